"""``think``."""

from __future__ import annotations

from typing import Any

import pytest

from engine.contract import Scope, ToolResult
from engine.defaults import internal_row
from engine.tools.think import LONGEST, Think
from events.types import Executed, Failed
from tests.engine.staging import CONTEXT, call, outcome_of, proved, staged_engine

TOOL = Think({}, Scope(user_id=None, owner=None, tool_id="internal"))


def test_it_answers_continue() -> None:
    assert TOOL.execute_action("reason", reasoning="because") == "Continue."
    assert TOOL.execute_action("reason", reasoning="x" * LONGEST) == "Continue."


@pytest.mark.parametrize(
    ("action", "arguments", "said"),
    [
        ("reason", {"reasoning": "x" * (LONGEST + 1)}, str(LONGEST)),
        ("reason", {}, "reasoning is required"),
        ("reason", {"reasoning": 5}, "reasoning is required"),
        ("guess", {"reasoning": "x"}, "Unknown action 'guess'"),
    ],
)
def test_what_it_does_not_take_is_an_error_result(action: str, arguments: dict[str, Any], said: str) -> None:
    result = TOOL.execute_action(action, **arguments)
    assert isinstance(result, ToolResult)
    assert result.status == "error"
    assert said in result.data


def test_its_one_action_needs_reasoning() -> None:
    [action] = TOOL.get_actions_metadata()
    assert action["name"] == "reason"
    assert action["parameters"]["required"] == ["reasoning"]
    assert TOOL.get_config_requirements() == {}


@pytest.mark.anyio
async def test_it_is_called_through_the_engine_and_its_reasoning_journalled(journal_url: str) -> None:
    """An internal tool has a row with an id, or no call of it would ever load."""
    async with staged_engine(journal_url, rows=[internal_row("think")]) as engine:
        prepared = await engine.prepare_tools_for_llm(CONTEXT, "openai")
        assert "reason" in prepared.names
        outcome = await outcome_of(engine, call({"reasoning": "because"}, name="reason"), prepared=prepared)
        assert isinstance(outcome, Executed)
        assert outcome.result == "Continue."
        refused = await outcome_of(engine, call({"reasoning": "x" * (LONGEST + 1)}, call_id="c2", name="reason"))
        assert isinstance(refused, Failed)
        assert refused.kind == "invalid_arguments"
        await proved(engine)
