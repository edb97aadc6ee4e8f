"""Of one action, from a shell: a person is asked, nobody is, or it is as the tool says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.command import Called, check_refused
from tests.cli.configured import prepared

__all__ = ()

ASKS: dict[str, Any] = {"name": "warn", "description": "It warns.", "parameters": {}, "require_approval": True}
EDIT = ("tools", "edit", "w1", "--action", "warn")


def test_the_three_are_set_shown_and_seen_at_the_next_call(called: Called, database_url: str, tmp_path: Path) -> None:
    commands = prepared(called, database_url, tmp_path)
    (commands.folder / "offers.json").write_text(json.dumps([ASKS]))
    commands.done("tools", "add", "weather", "--id", "w1", "--set", "auth_type=none")
    call = {"id": "c1", "type": "function", "function": {"name": "warn", "arguments": "{}"}}
    (tmp_path / "turn.json").write_text(json.dumps({"choices": [{"message": {"tool_calls": [call]}}]}))
    waived, asks, as_told = "approval waived", "asks each time", "asks as its tool says"
    for number, (option, said, words, ends) in enumerate(
        [
            ("--no-approval", False, waived, "executed"),
            ("--approval", True, asks, "paused"),
            ("--tool-approval", None, as_told, "paused"),
            ("--no-approval", False, waived, "executed"),
            ("--plain", None, as_told, "paused"),
        ]
    ):
        (edited,) = commands.done(*EDIT, option).lines
        assert [each["require_approval"] for each in edited["actions"]] == [said]
        assert f"  warn: {words}\n" in commands.done("--no-json", "tools", "show", "w1").out
        assert commands("run", tmp_path / "turn.json", "--message", f"m{number}").lines[-1]["type"] == ends
    versions = commands.done("tools", "show", "w1", "--versions").lines
    told = [each["definition"]["actions"][0]["require_approval"] for each in versions[1:]]
    assert told == [False, True, None, False, None]
    (tmp_path / "a.json").write_text('[{"name": "warn", "require_approval": false}]')
    done = commands.done("tools", "edit", "w1", "--actions", "a.json")
    assert done.lines[0]["actions"][0]["require_approval"] is False, "a file says what is to be"
    assert "a.json waives the approval of warn" in done.err
    commands.done(*EDIT, "--disable")
    assert "  warn: off, approval waived\n" in commands.done("--no-json", "tools", "show", "w1").out


def test_an_editor_waives_nothing(called: Called, tmp_path: Path) -> None:
    commands = prepared(called, f"sqlite:///{tmp_path}/journal.db", tmp_path)
    commands.done("tools", "add", "weather", "--id", "w1", "--set", "auth_type=none")
    commands.done("tools", "share", "w1", "--to", "bob", "--editor")
    check_refused(commands(*EDIT, "--no-approval", user="bob"), 2, "only its owner waives", "'warn'")
    commands.done(*EDIT, "--approval", user="bob")
