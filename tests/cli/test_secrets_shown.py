"""What is stored sealed is shown to nobody on the command line, and runs all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import Called

__all__ = ()

CANARY = "canary-write-only-77"
TOOL = """
from pathlib import Path
from engine import Tool

class Lock(Tool):
    name = "lock"
    def get_config_requirements(self): return {}
    def get_actions_metadata(self):
        pin = {"type": "string", "writeOnly": True}
        return [{"name": "open_lock", "require_approval": True, "description": "opens",
                 "parameters": {"type": "object", "properties": {"pin": pin, "door": {"type": "string"}}}}]
    def execute_action(self, action_name, /, **kwargs):
        Path("given.json").write_text(__import__("json").dumps(kwargs))
        return f"opened with {kwargs['pin']}"
"""


@pytest.fixture
def waiting(called: Called, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("CALLJOURNAL_MASTER_KEY", "CALLJOURNAL_MASTER_KEYS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "lock.py").write_text(TOOL)
    arguments = json.dumps({"pin": CANARY, "door": "front"})
    function = {"name": "open_lock", "arguments": arguments}
    message = {"tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    (tmp_path / "turn.json").write_text(json.dumps({"choices": [{"message": message}]}))
    return str(tmp_path / "tools")


def test_a_write_only_argument_is_masked_wherever_it_is_shown(called: Called, tmp_path: Path, waiting: str) -> None:
    ran = called("run", "turn.json", "--tools", waiting)
    said = [ran.out + ran.err]
    (listed,) = called("approvals").lines
    assert listed["arguments"] == {"pin": "***", "door": "front"}
    key = listed["key"]
    for form in ("--json", "--no-json"):
        for command in (("approvals",), ("events",), ("events", "--full"), ("attempts",), ("events", "--key", key)):
            shown = called(*command, form)
            assert shown.code == 0, shown
            said.append(shown.out + shown.err)
    done = called("approve", key, "--tools", waiting)
    said.append(done.out + done.err)
    resumed = called("resume", key, "--tools", waiting)
    said += [resumed.out + resumed.err, called("events").out, called("events", "--no-json").out]
    assert json.loads((tmp_path / "given.json").read_text()) == {"pin": CANARY, "door": "front"}
    assert "opened with ***" in resumed.out + said[-1]
    assert [text for text in said if CANARY in text] == []
    assert CANARY.encode() not in (tmp_path / "journal.db").read_bytes()
