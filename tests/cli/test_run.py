"""``calljournal run``: a response in, durable events out, exit codes that say how it went."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import EXAMPLES, Called, started

TURN = EXAMPLES / "turn.json"
TOOLS = EXAMPLES / "tools"


def kinds(lines: list[dict[str, object]]) -> list[object]:
    return [line["type"] for line in lines]


def test_a_recorded_turn_runs_and_again_runs_nothing(called: Called, database_url: str) -> None:
    first = called("run", TURN, "--tools", TOOLS, "--database", database_url)
    assert (first.code, first.err) == (0, "")
    assert kinds(first.lines) == ["proposed", "executed"] * 2
    assert [line["llm_name"] for line in first.lines[1::2]] == ["get_player_name", "roll_dice"]
    assert [line["position"] for line in first.lines] == sorted(line["position"] for line in first.lines)
    again = called("run", TURN, "--tools", TOOLS, "--database", database_url)
    assert again.code == 0
    assert again.lines == [line | {"replayed": True} for line in first.lines]
    logged = called("events", "--database", database_url)
    assert [line["id"] for line in logged.lines] == [line["id"] for line in first.lines]
    assert called("verify", "--database", database_url).lines[0]["ok"] is True


def test_the_three_real_tools_can_be_run(called: Called, tmp_path: Path) -> None:
    notes = EXAMPLES / "notes_turn.json"
    done = called("run", notes, "--user", "alice")
    assert done.code == 0
    assert [line["tool_name"] for line in done.lines[::2]] == ["think", "notes", "notes"]
    assert "bay 4" in done.lines[-1]["result"]
    turn = {
        "content": [{"type": "tool_use", "id": "t1", "name": "read_webpage", "input": {"url": "http://127.0.0.1/"}}]
    }
    (tmp_path / "page.json").write_text(json.dumps(turn))
    refused = called("run", tmp_path / "page.json")
    assert refused.code == 1
    assert refused.lines[-1]["tool_name"] == "read_webpage"


def test_a_tool_that_needs_a_user_says_so(called: Called) -> None:
    done = called("run", EXAMPLES / "notes_turn.json")
    assert done.code == 1
    assert [line["type"] for line in done.lines[1::2]] == ["executed", "failed", "failed"]


def test_a_result_that_is_an_error_gives_exit_code_1(called: Called, tmp_path: Path) -> None:
    turn = {"content": [{"type": "tool_use", "id": "t1", "name": "retrieve_entity_info", "input": {"name": "Eve"}}]}
    (tmp_path / "eve.json").write_text(json.dumps(turn))
    done = called("run", "eve.json", "--tools", TOOLS)
    assert done.code == 1
    assert done.lines[-1]["status"] == "error"


GATED = """
from engine import Tool

class Gated(Tool):
    def get_actions_metadata(self):
        return [{"name": "launch", "description": "", "parameters": {"type": "object"}, "require_approval": True}]
    def get_config_requirements(self):
        return {}
    def execute_action(self, action_name, /, **kwargs):
        raise AssertionError("it ran")
"""


@pytest.mark.parametrize(("options", "ending"), [((), "paused"), (("--headless",), "denied")])
def test_what_needs_approval_waits_or_is_denied(
    called: Called, tmp_path: Path, options: tuple[str, ...], ending: str
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "gated.py").write_text(GATED)
    turn = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "launch", "args": {}}}]}}]}
    (tmp_path / "turn.json").write_text(json.dumps(turn))
    done = called("run", "turn.json", "--tools", "own", *options)
    assert done.code == 1
    assert kinds(done.lines) == ["proposed", ending]


def test_the_message_is_the_responses_own_id_or_the_one_given(called: Called, tmp_path: Path) -> None:
    response = json.loads(TURN.read_text()) | {"id": "chatcmpl-7"}
    (tmp_path / "turn.json").write_text(json.dumps(response))
    own = called("run", "turn.json", "--tools", TOOLS, "--conversation", "c1")
    assert {line["message_id"] for line in own.lines} == {"chatcmpl-7"}
    assert {line.get("conversation_id") for line in own.lines[::2]} == {"c1"}
    given = called("run", "turn.json", "--tools", TOOLS, "--message", "m1")
    assert {line["message_id"] for line in given.lines} == {"m1"}
    assert [line["call_id"] for line in given.lines] == [line["call_id"] for line in own.lines]


def test_calls_without_ids_are_the_same_calls_the_next_time(called: Called, tmp_path: Path) -> None:
    call = {"function": {"name": "roll_dice", "arguments": "{}"}}
    (tmp_path / "turn.json").write_text(json.dumps({"choices": [{"message": {"tool_calls": [call, call]}}]}))
    first = called("run", "turn.json", "--tools", TOOLS)
    assert first.code == 0
    assert len({line["key"] for line in first.lines}) == 2
    again = called("run", "turn.json", "--tools", TOOLS)
    assert [line["id"] for line in again.lines] == [line["id"] for line in first.lines]


def test_a_tool_that_cannot_be_imported_costs_only_itself(called: Called, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "broken.py").write_text("import no_such_library")
    done = called("run", TURN, "--tools", TOOLS, "--tools", "own")
    assert done.code == 0
    assert done.err.count("\n") == 1
    assert "no_such_library" in done.err


def test_people_see_lines_and_what_went_wrong_in_full(called: Called, tmp_path: Path) -> None:
    arguments = json.dumps({"name": "Ann\x1b[2J\u202e"})
    call = {"id": "c1", "function": {"name": "retrieve_entity_info", "arguments": arguments}}
    wrong = {"id": "c2", "function": {"name": "nobody_has_this", "arguments": "{}"}}
    (tmp_path / "turn.json").write_text(json.dumps({"choices": [{"message": {"tool_calls": [call, wrong]}}]}))
    done = called("--no-json", "run", "turn.json", "--tools", TOOLS)
    assert done.code == 1
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out
    failed = next(line for line in done.out.splitlines() if "failed" in line)
    assert "Callable tools: " in failed
    assert "roll_dice" in failed
    assert done.out.splitlines()[-1] == "1 executed with an error, 1 failed"


def test_a_response_comes_through_a_pipe_and_events_are_lines_of_utf_8(tmp_path: Path) -> None:
    done = started("run", "-", "--tools", TOOLS, cwd=tmp_path, stdin=(EXAMPLES / "family_turn.json").read_bytes())
    assert (done.code, done.err) == (0, "")
    assert kinds(done.lines) == ["proposed", "executed"] * 4
    assert (tmp_path / "journal.db").exists()
