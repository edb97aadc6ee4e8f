"""``calljournal tools``: rows configured, looked at, changed and removed in a shell, and no secret shown."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.defaults import default_id
from tests.cli.answering import END, typed
from tests.cli.command import Called, check_refused, environment
from tests.cli.configured import CANARY, Commands, prepared, weather_folder

__all__ = ()

BEARER = ("--set", "auth_type=bearer", "--secret-env", "api_key=KEY")


@pytest.fixture
def commands(called: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.setenv("KEY", CANARY)
    return prepared(called, f"sqlite:///{tmp_path}/journal.db", tmp_path)


@pytest.fixture
def on_each(called: Called, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    monkeypatch.setenv("KEY", CANARY)
    return prepared(called, database_url, tmp_path)


@pytest.fixture
def one(commands: Commands) -> Commands:
    commands.done("tools", "add", "weather", "--id", "w1", *BEARER, "--label", "mine", "--by", "ann")
    return commands


def test_a_row_is_added_listed_shown_changed_and_removed(on_each: Commands) -> None:
    added = on_each.done("tools", "add", "weather", "--id", "w1", *BEARER, "--label", "mine", "--by", "ann").lines
    told = {"id": "w1", "name": "weather", "label": "mine", "active": True, "version": 1, "actions": None}
    assert added == [told | {"config": {"auth_type": "bearer"}}]
    listed, *defaults = on_each.done("tools", "list").lines
    assert (listed["id"], listed["role"], listed["has_secrets"], listed["owner"]) == ("w1", "owner", True, "u")
    assert [each for each in defaults if each["role"] != "default"] == []
    (shown,) = on_each.done("tools", "show", "w1").lines
    assert (shown["config"], shown["shares"], shown["has_secrets"]) == ({"auth_type": "bearer"}, [], True)
    changed = on_each.done("tools", "edit", "w1", "--set", "timeout=30", "--set", "note=0123", "--by", "bob").lines[0]
    assert (changed["version"], changed["config"]) == (2, {"auth_type": "bearer", "timeout": 30, "note": "0123"})
    assert on_each.done("tools", "edit", "w1", "--set", "timeout=30").lines[0]["version"] == 2
    edits = ("--unset", "note", "--inactive", "--label", "", "--set", 'places=["Ulm"]', "--version", "2")
    changed = on_each.done("tools", "edit", "w1", *edits).lines[0]
    assert changed["config"] == {"auth_type": "bearer", "timeout": 30, "places": ["Ulm"]}
    assert (changed["active"], changed["label"], changed["version"]) == (False, "", 3)
    check_refused(on_each("tools", "edit", "w1", "--active", "--version", "2"), 3, "version 3, not 2")
    on_each.done("tools", "remove", "w1", "--version", "3")
    versions = on_each.done("tools", "show", "w1", "--versions").lines
    assert [(each["version"], each["changed_by"] in ("ann", "bob")) for each in versions[:2]] == [(1, True), (2, True)]
    assert versions[-1]["definition"] is None
    check_refused(on_each("tools", "show", "w1"), 2, "there is no tool row 'w1'")
    assert [each for each in on_each.done("tools", "list").lines if each["role"] != "default"] == []


def test_a_configuration_from_a_file(commands: Commands, tmp_path: Path) -> None:
    content = {"auth_type": "bearer", "api_key": CANARY, "timeout": 7, "places": ["Ulm", "no"]}
    forms = {
        "c.json": json.dumps(content),
        "c.yaml": f"auth_type: bearer\napi_key: {CANARY}\ntimeout: 7\nplaces: [Ulm, no]\n",
        "c.toml": f'auth_type = "bearer"\napi_key = "{CANARY}"\ntimeout = 7\nplaces = ["Ulm", "no"]\n',
    }
    for name, text in forms.items():
        (tmp_path / name).write_text(text)
        add = ("tools", "add", "weather", "--config", name, "--set", "timeout=8", "--id", name)
        (added,) = commands.done(*add).lines
        assert added["config"] == {"auth_type": "bearer", "timeout": 8, "places": ["Ulm", "no"]}, name
    (edited,) = commands.done("tools", "edit", "c.yaml", "--config", "c.json", "--unset", "places").lines
    assert edited["config"] == {"auth_type": "bearer", "timeout": 7}
    broken = {"b.json": "{", "b.yaml": "a: [", "b.toml": "a", "l.json": "[1]", "u.json": '{"a": "\\ud800"}'}
    for name, text in broken.items():
        (tmp_path / name).write_text(text)
        check_refused(commands("tools", "add", "weather", "--config", name), 2, name)
    check_refused(commands("tools", "add", "weather", "--config", "none.json"), 2, "none.json", "No such file")
    check_refused(commands("tools", "add", "weather", "--config", "."), 2, "directory")


NONSENSE: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("add", "wether"), ("wether", "weather")),
    (("add", "think"), ("think",)),
    (("add", "weather"), ("'auth_type' is required",)),
    (("add", "weather", "--set", "auth_type=bearer"), ("'api_key' is required", "secret")),
    (("add", "weather", "--set", f"api_key={CANARY}"), ("'api_key' is a secret", "--secret api_key")),
    (("add", "weather", "--set", "auth_type=none", "--set", "timeout=soon"), ("'timeout' must be integer",)),
    (("add", "weather", "--set", "auth_type=none", "--set", "timeout=301"), ("'timeout'", "300")),
    (("add", "weather", "--set", "auth_type=none", "--set", "colour=red"), ("'colour' is unknown",)),
    (("add", "weather", "--set", "auth_type"), ("--set takes KEY=VALUE",)),
    (("add", "weather", "--secret-env", "api_key=NOWHERE"), ("$NOWHERE", "not set")),
    (("add", "weather", "--openapi", "x"), ("--openapi", "api_tool")),
    (("add", "weather", "--set", "auth_type=none", "--id", "ct1"), ("'ct1'",)),
    (("add", "weather", "--set", "auth_type=none", "--id", default_id("weather")), ("kept for tools",)),
    (("add",), ("TOOL",)),
    (("edit", "none", "--active"), ("no tool row 'none'",)),
    (("edit", "w1"), ("nothing was said",)),
    (("edit", "w1", "--forget-secret", "api_key"), ("'api_key' is required",)),
    (("edit", "w1", "--action", "snow", "--approval"), ("'snow'", "forecast, warn")),
    (("edit", "w1", "--approval"), ("--action",)),
    (("edit", "w1", "--action", "warn", "--pin", "days=1"), ("takes no 'days'",)),
    (("edit", "w1", "--action", "forecast", "--preset", 'days="many"'), ("days", "integer")),
    (("edit", default_id("read_webpage"), "--inactive"), ("'read_webpage' is a default tool",)),
    (("remove", "none"), ("no tool row 'none'",)),
    (("test", "none"), ("no tool row 'none'",)),
    (("test", "w1", "--action", "warn"), ("--dry-run",)),
    (("test", "w1", "--dry-run"), ("--action",)),
    (("test", "w1", "--dry-run", "--action", "forecast"), ("city",)),
    (("test", "w1", "--dry-run", "--action", "snow"), ("'snow'",)),
    (("test", "w1", "--dry-run", "--action", "warn", "--arguments", "["), ("JSON",)),
    (("refresh", "none"), ("no tool row 'none'",)),
    (("share", "w1"), ("--to USER",)),
    (("share", "w1", "--to", "u"), ("already",)),
    (("share", "w1", "--team", "ops"), ("no team 'ops'",)),
    (("unshare", "w1", "--everyone"), ("not shared",)),
    (("off", "weather"), ("no built-in tool 'weather'", "read_webpage")),
)


def test_what_makes_no_sense_is_one_line(one: Commands) -> None:
    for arguments, words in NONSENSE:
        check_refused(one("tools", *arguments), 2, *words)
    assert one.done("tools", "list").lines[0]["version"] == 1


READING: tuple[tuple[str, ...], ...] = (
    ("tools", "list"),
    ("tools", "show", "x"),
    ("tools", "edit", "x", "--label", "y"),
    ("tools", "remove", "x"),
    ("tools", "off", "read_webpage"),
    ("teams", "members", "x"),
    ("teams", "leave", "x", "y"),
    ("credentials", "status"),
)


def test_there_must_be_a_journal_but_for_what_makes_one(called: Called, tmp_path: Path) -> None:
    add = ("tools", "add", "weather", "--id", "w1", "--set", "auth_type=none", "--tools", weather_folder(tmp_path))
    (tmp_path / "c.txt").write_text("curl https://api.example/v1/x")
    making: dict[tuple[str | Path, ...], str] = {
        add: "w1@1",
        ("tools", "add", "api_tool", "--curl", "c.txt"): "added",
        ("teams", "join", "ops", "ann"): "ann is in ops",
        ("credentials", "rotate"): "0 sealed anew",
    }
    for place, (arguments, words) in enumerate(making.items()):
        file = tmp_path / f"{place}.db"
        on = ("--database", f"sqlite:///{file}")
        for reading in READING:
            check_refused(called(*on, *reading), 3, f"there is no journal '{file}' yet", "`tools add`")
        assert not file.exists()
        made = called(*on, "--no-json", *arguments)
        assert (made.code, words in made.out) == (0, True), made
        assert made.err == f"calljournal: there was no journal '{file}'; it is made\n"
        assert called(*on, "verify").code == 0
    on = ("--database", f"sqlite:///{tmp_path}/0.db")
    assert called(*on, "--no-json", "teams", "join", "ops", "ann").err == "", "it is there"
    assert [each["id"] for each in called(*on, "tools", "list").lines][:1] == ["w1"]
    check_refused(called("--database", f"sqlite:///{tmp_path}/none/j.db", *add), 3, "j.db")
    for memory in ("sqlite://", "sqlite:///:memory:"):
        check_refused(called("--database", memory, *add), 2, "in memory is gone")


@pytest.mark.postgres
def test_a_server_s_tables_are_made_by_command_only(called: Called, empty_postgres_url: str, tmp_path: Path) -> None:
    on = ("--database", empty_postgres_url)
    add = ("tools", "add", "weather", "--set", "auth_type=none", "--tools", weather_folder(tmp_path))
    for arguments in (add, ("teams", "join", "ops", "ann"), ("credentials", "rotate")):
        check_refused(called(*on, *arguments), 3, "migrate")
    assert called(*on, "migrate").code == 0
    assert called(*on, *add).code == 0


def test_on_a_terminal_what_is_missing_is_asked_for_and_secrets_are_not_echoed(
    commands: Commands, tmp_path: Path
) -> None:
    on = ("--database", commands.database, "--tools", str(commands.folder), "--user", "u")
    add = ("tools", "add", "weather", "--id", "w1", *on)
    done = typed(add, ["bearer", CANARY], tmp_path, environment())
    assert (done.code, CANARY in done.out + done.err) == (0, False), done
    assert "auth_type (none, bearer)" in done.err
    assert "api_key, not shown" in done.err
    assert done.lines[0]["config"] == {"auth_type": "bearer"}
    change = ("tools", "edit", "w1", "--secret", "api_key", *on)
    done = typed(change, [f"{CANARY}-2"], tmp_path, environment())
    assert (done.code, CANARY in done.out + done.err, done.lines[0]["version"]) == (0, False, 2)
    done = typed(add, [END], tmp_path, environment())
    assert (done.code, done.out) == (130, "")
    assert "nothing was stored" in done.err


def test_without_a_terminal_a_secret_is_a_line_of_standard_input(commands: Commands, tmp_path: Path) -> None:
    on = ("--database", commands.database, "--tools", str(commands.folder))
    program = [sys.executable, "-P", "-m", "engine.cli", "tools", "add", "weather", *on]

    def run(stdin: str, *arguments: str) -> Any:
        given = {"cwd": tmp_path, "env": environment(), "input": stdin, "text": True, "capture_output": True}
        return subprocess.run([*program, *arguments], check=False, timeout=60, **given)  # type: ignore[call-overload]

    done = run(f"{CANARY}\n", "--set", "auth_type=bearer", "--secret", "api_key")
    assert (done.returncode, CANARY in done.stdout + done.stderr) == (0, False), done.stderr
    assert json.loads(done.stdout)["config"] == {"auth_type": "bearer"}
    done = run("", "--set", "auth_type=bearer", "--secret", "api_key")
    assert (done.returncode, "nothing was entered for 'api_key'" in done.stderr) == (2, True)


def test_people_read_lines(one: Commands) -> None:
    one.done("tools", "edit", "w1", "--action", "warn", "--approval", "--by", "bob")
    listed = one.done("--no-json", "tools", "list").out
    assert [word for word in ("w1@2", "weather", "mine", "owner", "stored", "read_webpage") if word not in listed] == []
    shown = one.done("--no-json", "tools", "show", "w1").out
    assert 'auth_type = "bearer"' in shown
    assert "secrets are stored" in shown
    assert "  warn: asks each time\n" in shown
    versions = one.done("--no-json", "tools", "show", "w1", "--versions").out
    assert "by ann" in versions
    assert "by bob" in versions
    assert "removed w1@2" in one.done("--no-json", "tools", "remove", "w1").out


def test_the_catalogue_is_listed_as_before(commands: Commands) -> None:
    plain = commands.done("tools").lines
    assert commands.done("tools", "catalogue").lines == plain
    entries = {each["name"]: each for each in plain}
    assert entries["weather"]["needs"] == ["auth_type"]
    assert entries["weather"]["actions"] == ["forecast", "warn"]
    assert "server_url" in entries["mcp_tool"]["needs"]


def test_defaults_are_switched_off_and_on(commands: Commands) -> None:
    def state() -> list[bool]:
        return [each["active"] for each in commands.done("tools", "list").lines if each["name"] == "read_webpage"]

    assert state() == [True]
    (off,) = commands.done("tools", "off", "read_webpage").lines
    known = {"id": default_id("read_webpage"), "name": "read_webpage", "role": "default", "unavailable": None}
    assert off == known | {"active": False, "standing": "off", "set_by": "user"}
    assert state() == [False]
    assert commands.done("--no-json", "tools", "ask", "read_webpage").out == "read_webpage is on, and asks first\n"
    assert state() == [True]
    assert "ask, by user" in commands.done("--no-json", "tools", "list").out
    assert commands.done("--no-json", "tools", "on", "read_webpage").out == "read_webpage is on\n"
    assert "by user" not in commands.done("--no-json", "tools", "list").out
