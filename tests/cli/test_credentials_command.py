"""``calljournal credentials``: which keys are in use, and one command to be rid of the old ones."""

from __future__ import annotations

import base64
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engine.credentials import Vault
from engine.master_keys import find_master_keys, key_file
from tests.cli.command import EXAMPLES, Called, check_refused

__all__ = ()

CANARY = "canary-77ab"
ROW = "INSERT INTO tool_rows VALUES ('t1', 'uu', 1, 1, '{}', ?, '2025-01-01T00:00:00', '2025-01-01T00:00:00')"


@pytest.fixture
def journal(called: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CALLJOURNAL_MASTER_KEY", "CALLJOURNAL_MASTER_KEYS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert called("run", EXAMPLES / "turn.json", "--tools", EXAMPLES / "tools").code == 0
    sealed = Vault().seal({"api_key": CANARY}, owner="u", row_id="t1")
    with closing(sqlite3.connect(tmp_path / "journal.db")) as connection:
        connection.execute(ROW, (sealed,))
        connection.commit()
    return tmp_path / "journal.db"


def opened(journal: Path) -> dict[str, str]:
    with closing(sqlite3.connect(journal)) as connection:
        (sealed,) = connection.execute("SELECT credentials FROM tool_rows").fetchone()
    return Vault().open(sealed, owner="u", row_id="t1")


def test_a_new_key_takes_the_place_of_the_old_one(called: Called, journal: Path) -> None:
    (first,) = called("credentials", "status").lines
    assert first == {"key": find_master_keys().current, "current": True, "known": True, "rows": 1, "tokens": 0}
    done = called("credentials", "rotate", "--new-key")
    assert (done.code, done.lines[0]["renewed"], done.lines[0]["failed"]) == (0, 1, [])
    keys = find_master_keys()
    assert list(keys.keys) == [done.lines[0]["key"], first["key"]]
    assert done.err == f"calljournal: the key file has a new current key, {keys.current}\n"
    assert key_file().stat().st_mode & 0o777 == 0o600
    assert [use["rows"] for use in called("credentials", "status").lines] == [1]
    assert opened(journal) == {"api_key": CANARY}
    shown = called("credentials", "status", "--no-json")
    assert "current" in shown.out
    assert called("credentials", "rotate", "--no-json").out.startswith("0 sealed anew under key")
    # Nothing needs the old key any more.
    key_file().write_text(key_file().read_text().splitlines()[0])
    assert opened(journal) == {"api_key": CANARY}
    assert base64.b64encode(keys.keys[keys.current]).decode() not in done.out + done.err + shown.out


def test_a_lost_key_is_a_no_and_says_which(called: Called, journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = find_master_keys().current
    monkeypatch.setenv("CALLJOURNAL_MASTER_KEY", base64.b64encode(b"3" * 32).decode())
    found = called("credentials", "status")
    assert found.code == 1
    assert [(use["key"], use["known"]) for use in found.lines][1:] == [(lost, False)]
    assert "NOT AMONG YOUR KEYS" in called("credentials", "status", "--no-json").out
    done = called("credentials", "rotate")
    assert (done.code, done.lines[0]["renewed"]) == (1, 0)
    assert "'t1'" in done.err
    assert lost in done.err
    assert CANARY not in done.out + done.err
    check_refused(called("credentials", "rotate", "--new-key"), 2, "CALLJOURNAL_MASTER_KEY")


def test_two_cannot_add_a_key_at_once(called: Called, journal: Path) -> None:
    before = key_file().read_text()
    lock = key_file().with_name("master.key.lock")
    lock.touch()
    check_refused(called("credentials", "rotate", "--new-key"), 2, "somebody else", str(lock))
    assert key_file().read_text() == before


def test_what_cannot_be_a_key_is_refused_without_showing_it(
    called: Called, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLJOURNAL_MASTER_KEYS", "canary-no-key")
    check_refused(called("credentials", "status"), 2, "entry 1 of CALLJOURNAL_MASTER_KEYS")


@pytest.mark.usefixtures("called")
def test_without_a_journal_there_is_nothing_to_look_at(called: Called) -> None:
    check_refused(called("credentials", "status"), 3, "no journal")
