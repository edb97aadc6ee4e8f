"""``calljournal tools refresh`` against a real MCP server whose tools change between two looks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP

from tests.cli.command import Called, Ended
from tests.cli.configured import Commands, prepared
from tests.engine.mcp.serving import real_server

__all__ = ()


class Yard:
    """A server, and its tools as they are now."""

    def __init__(self) -> None:
        self.server: FastMCP[Any] = FastMCP("yard")
        self.put("look", "Looks around.", readOnlyHint=True)
        self.put("send", "Sends a note.")
        self.put("wave", "Waves.")

    def put(self, name: str, description: str, **hints: bool) -> None:
        def done(to: str = "") -> str:
            return f"{name}: {to}"

        self.server.tool(name=name, description=description, annotations=hints)(done)

    def take(self, name: str) -> None:
        self.server.local_provider.remove_tool(name)

    def change(self) -> None:
        """Take one away, add one, and have one say something else."""
        self.take("wave")
        self.take("send")
        self.put("send", "Sends a note, and a copy to the yard.")
        self.put("dig", "Digs.")


@pytest.fixture
def yard() -> Yard:
    return Yard()


@pytest.fixture
def commands(
    called: Called, database_url: str, tmp_path: Path, yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Commands]:
    monkeypatch.setenv("CALLJOURNAL_ALLOW_HOSTS", "127.0.0.1")
    with real_server(yard.server) as url:
        commands = prepared(called, database_url, tmp_path)
        add = ("tools", "add", "mcp_tool", "--id", "y1", "--set", f"server_url={url}", "--set", "auth_type=none")
        commands.done(*add)
        yield commands


def run(commands: Commands, name: str, message: str, place: Path) -> Ended:
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps({"to": "ann"})}}
    file = place / "turn.json"
    file.write_text(json.dumps({"choices": [{"message": {"tool_calls": [call]}}]}))
    return commands("run", file, "--message", message, "--conversation", "k")


def end(commands: Commands, name: str, message: str, place: Path) -> str:
    return str(run(commands, name, message, place).lines[-1]["type"])


def test_a_server_s_changes_are_named_kept_and_asked_about_anew(commands: Commands, yard: Yard, tmp_path: Path) -> None:
    (first,) = commands.done("tools", "refresh", "y1").lines
    assert (sorted(first["added"]), first["removed"], first["changed"]) == (["look", "send", "wave"], [], [])
    assert (first["version"], first["kept"]) == (2, True)
    # One call is allowed for as long as this is the tool; another is approved, and not run yet.
    assert end(commands, "send", "m1", tmp_path) == "paused"
    commands.done("approve", "m1:c1", "--remember", "1h")
    assert [end(commands, name, f"m2-{name}", tmp_path) for name in ("send", "look")] == ["executed", "executed"]
    assert end(commands, "wave", "m3", tmp_path) == "paused"

    yard.change()
    difference = {"id": "y1", "added": ["dig"], "removed": ["wave"], "changed": ["send"], "same": 1}
    assert commands.done("tools", "refresh", "y1", "--dry-run").lines == [difference | {"version": 2, "kept": False}]
    before = run(commands, "send", "m4", tmp_path).lines[-1]
    assert (before["type"], "has changed this tool" in before["reason"]) == ("paused", True)

    people = commands.done("--no-json", "tools", "refresh", "y1").out
    assert people == "added    dig\nremoved  wave\nchanged  send\n1 as before; y1@3\n"
    after = run(commands, "send", "m5", tmp_path).lines[-1]
    assert (after["type"], after["rule"]) == ("paused", "require_approval"), "what was allowed was another tool"
    again = commands("resume", "m1:c1").lines[-1]
    assert (again["type"], again["rule"]) == ("paused", "definition_changed")
    gone = run(commands, "wave", "m6", tmp_path).lines[-1]
    assert (gone["type"], gone["kind"]) == ("failed", "unknown_tool")
    assert [end(commands, name, f"m7-{name}", tmp_path) for name in ("look", "dig")] == ["executed", "paused"]
    (last,) = commands.done("tools", "refresh", "y1").lines
    assert (last["same"], last["version"]) == (3, 3)
    (shown,) = commands.done("tools", "show", "y1").lines
    told = {each["name"]: each["description"] for each in shown["actions_metadata"]}
    assert told == {"look": "Looks around.", "send": "Sends a note, and a copy to the yard.", "dig": "Digs."}


def test_a_waiver_never_hides_a_change(commands: Commands, yard: Yard, tmp_path: Path) -> None:
    commands.done("tools", "refresh", "y1")
    commands.done("tools", "edit", "y1", "--action", "send", "--no-approval")
    assert end(commands, "send", "m1", tmp_path) == "executed"
    yard.change()
    assert end(commands, "send", "m2", tmp_path) == "paused"
    refreshed = commands.done("tools", "refresh", "y1")
    assert refreshed.lines[0]["changed"] == ["send"]
    assert "'send' has changed, and its approval is waived" in refreshed.err
