"""Master keys: from the environment, else from one file that is made once and that only its owner reads."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.master_keys import MasterKeys, find_master_keys, key_file
from events import Refused
from events.errors import Unavailable
from tests.shape import ROOT

__all__ = ()

FIRST, SECOND = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("CALLJOURNAL_MASTER_KEY", raising=False)
    monkeypatch.delenv("CALLJOURNAL_MASTER_KEYS", raising=False)
    return tmp_path


@pytest.mark.usefixtures("home")
def test_the_environment_goes_before_the_file() -> None:
    one = find_master_keys({"CALLJOURNAL_MASTER_KEY": FIRST})
    assert list(one.keys.values()) == [b"\1" * 32]
    several = find_master_keys({"CALLJOURNAL_MASTER_KEYS": f"new:{SECOND}, {FIRST.rstrip('=')}"})
    assert several.current == "new"
    # A key without an id always has the same one, so that the only key may become one of several.
    assert several.keys[one.current] == b"\1" * 32
    assert not key_file().exists()


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"CALLJOURNAL_MASTER_KEY": "short"}, "entry 1 of CALLJOURNAL_MASTER_KEY is no key"),
        ({"CALLJOURNAL_MASTER_KEYS": f"a:{FIRST},b:{FIRST[:-8]}"}, "entry 2 of CALLJOURNAL_MASTER_KEYS is no key"),
        ({"CALLJOURNAL_MASTER_KEYS": f"a:{FIRST},a:{SECOND}"}, "two keys with one id"),
        ({"CALLJOURNAL_MASTER_KEYS": " , "}, "holds no key"),
        ({"CALLJOURNAL_MASTER_KEYS": f"ä:{FIRST}"}, "id has 1 to 32"),
        ({"CALLJOURNAL_MASTER_KEY": FIRST, "CALLJOURNAL_MASTER_KEYS": SECOND}, "both set"),
    ],
)
def test_what_is_no_key_is_refused_without_showing_it(environ: dict[str, str], said: str) -> None:
    with pytest.raises(Refused, match=said) as caught:
        find_master_keys(environ)
    assert not any(part in str(caught.value) for part in ("short", FIRST[:8], SECOND[:8]))


@pytest.mark.parametrize(("current", "keys"), [("a", {}), ("a", {"b": b"1" * 32}), ("a", {"a": b"1" * 31})])
def test_keys_that_cannot_be_are_refused(current: str, keys: dict[str, bytes]) -> None:
    with pytest.raises(Refused):
        MasterKeys(current, keys)


def test_the_file_is_made_once_and_for_its_owner_alone(home: Path) -> None:
    made = find_master_keys({})
    assert key_file() == home / "calljournal" / "master.key"
    assert key_file().stat().st_mode & 0o777 == 0o600
    assert find_master_keys({}) == made
    assert [path.name for path in key_file().parent.iterdir()] == ["master.key"]


@pytest.mark.usefixtures("home")
def test_a_file_that_others_read_or_that_holds_no_key_is_not_used() -> None:
    find_master_keys({})
    key_file().chmod(0o640)
    with pytest.raises(Unavailable, match="chmod 600"):
        find_master_keys({})
    key_file().chmod(0o600)
    key_file().write_text("")
    with pytest.raises(Refused, match="holds no key"):
        find_master_keys({})
    key_file().write_bytes(b"\xff\xfe")
    with pytest.raises(Unavailable, match="it holds no text"):
        find_master_keys({})


def test_where_no_file_can_be_made_the_variable_is_named(home: Path) -> None:
    (home / "calljournal").write_text("in the way")
    with pytest.raises(Unavailable, match="set CALLJOURNAL_MASTER_KEY"):
        find_master_keys({})


def test_processes_that_make_the_file_at_once_agree_on_one_key(home: Path) -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from engine.master_keys import find_master_keys\n"
        "sys.stdin.read(1); keys = find_master_keys(); print(keys.current, keys.keys[keys.current].hex())"
    )
    environ = {**os.environ, "XDG_STATE_HOME": str(home)}
    made = [
        subprocess.Popen(
            [sys.executable, "-P", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ
        )
        for _ in range(4)
    ]
    for process in made:
        assert process.stdin is not None
        process.stdin.write("x")
        process.stdin.flush()
    said = {process.communicate()[0] for process in made}
    assert len(said) == 1
    assert all(process.returncode == 0 for process in made)
