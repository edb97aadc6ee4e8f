"""``think``."""

from __future__ import annotations

from typing import Any

import pytest

from engine.contract import Scope, ToolResult
from engine.tools.think import LONGEST, Think

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
