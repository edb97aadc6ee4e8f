"""What the environment and a user say of tools, as the command line shows it and keeps to it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.defaults import default_id
from tests.cli.command import Called, check_refused

__all__ = ()


def catalogue(called: Called) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in called("tools").lines}


def listed(called: Called) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in called("tools", "list", "--user", "u").lines}


def turn(tmp_path: Path, *names: str) -> Path:
    calls = [
        {"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": '{"path": "/"}'}}
        for place, name in enumerate(names)
    ]
    path = tmp_path / "turn.json"
    path.write_text(json.dumps({"choices": [{"message": {"role": "assistant", "tool_calls": calls}}]}))
    return path


def test_the_environment_says_what_may_be_used(called: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called("migrate")
    monkeypatch.setenv("CALLJOURNAL_TOOL_STANDINGS", "memory=ask, cryptoprice=on read_webpage=off")
    monkeypatch.setenv("CALLJOURNAL_DENY_TOOLS", "postgres,notes")
    entries = catalogue(called)
    said = {name: (each["standing"], each["default_on"]) for name, each in entries.items()}
    assert said["memory"] == ("ask", True)
    assert said["cryptoprice"] == ("on", True)
    assert said["read_webpage"] == ("off", False)
    assert (said["notes"], said["think"]) == (("denied", False), (None, False))
    shown = {name: (each["standing"], each["set_by"], each["role"]) for name, each in listed(called).items()}
    assert shown == {
        "memory": ("ask", "deployment", "default"),
        "cryptoprice": ("on", "deployment", "default"),
        "read_webpage": ("off", "deployment", "default"),
    }
    called("tools", "off", "duckduckgo", "--user", "u")
    duckduckgo = listed(called)["duckduckgo"]
    assert (duckduckgo["id"], duckduckgo["role"]) == (default_id("duckduckgo"), "built-in")
    on = called("tools", "on", "read_webpage", "--user", "u", "--no-json")
    assert on.out == "read_webpage is off; the deployment says so\n"
    ran = called("run", turn(tmp_path, "memory_view", "read_webpage", "note_list", "ddg_web_search"), "--user", "u")
    ends = [each["type"] for each in ran.lines if each["type"] != "proposed"]
    assert ends == ["paused", "failed", "failed", "failed"]
    assert {each["kind"] for each in ran.lines if each["type"] == "failed"} == {"unknown_tool"}
    check_refused(called("tools", "add", "notes", "--user", "u"), 2, "'notes'", "not permitted")
    table = called("tools", "list", "--user", "u", "--no-json").out
    assert "ask, by deployment" in table
    assert "off, by user" in table
    assert "denied" in called("tools", "--no-json").out
    monkeypatch.setenv("CALLJOURNAL_ALLOW_TOOLS", "memory")
    assert [name for name, each in listed(called).items() if each["role"] in ("default", "built-in")] == ["memory"]


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("CALLJOURNAL_TOOL_STANDINGS", "memory", ("CALLJOURNAL_TOOL_STANDINGS", "'memory'", "=ask")),
        ("CALLJOURNAL_TOOL_STANDINGS", "memory=maybe", ("CALLJOURNAL_TOOL_STANDINGS", "'maybe'")),
        ("CALLJOURNAL_TOOL_STANDINGS", "memori=off", ("'memori'", "there is no tool")),
        ("CALLJOURNAL_TOOL_STANDINGS", "memory=off memory=on", ("CALLJOURNAL_TOOL_STANDINGS", "off and on")),
        ("CALLJOURNAL_DENY_TOOLS", "memori", ("'memori'", "there is no tool")),
        ("CALLJOURNAL_ALLOW_TOOLS", " , ,", ("CALLJOURNAL_ALLOW_TOOLS", "no tool's name")),
    ],
)
def test_what_the_environment_cannot_say(
    called: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv(variable, value)
    check_refused(called("run", turn(tmp_path, "memory_view")), 2, *words)
    (fault,) = [each for each in called("doctor", "--json").lines if each["subject"] == "tool policy"]
    assert fault["level"] == "fault"
    assert [word for word in words if word not in fault["message"]] == []


def test_a_tool_that_cannot_work_says_why(called: Called, monkeypatch: pytest.MonkeyPatch) -> None:
    called("migrate")
    assert catalogue(called)["duckduckgo"]["unavailable"] is None
    monkeypatch.setitem(sys.modules, "ddgs", None)
    reason = catalogue(called)["duckduckgo"]["unavailable"]
    assert "calljournal[search]" in reason
    assert "Cannot work at present" in " ".join(called("tools", "--no-json").out.split())
    found = [each for each in called("doctor", "--json").lines if "duckduckgo" in each["message"]]
    assert [(each["level"], reason in each["message"]) for each in found] == [("warning", True)]
    assert reason in called("tools", "ask", "duckduckgo", "--no-json").out
