"""Rows, tools and actions for the tests of everything between a payload and a typed call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.actions import Action, resolve_actions
from engine.contract import Tool
from engine.rows import ActionSettings, ToolRow

__all__ = ("ConfiguredTool", "PlainTool", "actions_of", "configured", "plain")


class PlainTool(Tool):
    """A tool whose actions are what its test says."""

    def execute_action(self, action_name: str, /, **kwargs: Any) -> Any:
        raise NotImplementedError

    def get_actions_metadata(self) -> Any:
        raise NotImplementedError

    def get_config_requirements(self) -> dict[str, Any]:
        return {}


class ConfiguredTool(PlainTool):
    """A tool whose actions are in its row."""

    actions_in_config = True


def actions_of(
    *entries: dict[str, Any] | str,
    row: str = "t1",
    name: str = "test_tool",
    settings: list[ActionSettings] | None = None,
    synthesised: bool = False,
    tool: type[Tool] = PlainTool,
) -> tuple[Action, ...]:
    """Return the actions of one row of a tool with these metadata entries (a text: an entry with that name alone)."""
    metadata = [{"name": entry} if isinstance(entry, str) else entry for entry in entries]
    return resolve_actions(ToolRow(id=row, name=name, actions=settings, synthesised=synthesised), tool, metadata)


def plain(properties: dict[str, Any], *, settings: ActionSettings | None = None, **schema: Any) -> Action:
    """Return one action with these properties."""
    entry = {"name": "act", "parameters": {"type": "object", "properties": properties, **schema}}
    return actions_of(entry, settings=None if settings is None else [settings])[0]


def configured(content: dict[str, Any], *, settings: Sequence[ActionSettings] = (), **config: Any) -> Action:
    """Return the one action ``send`` of an API row."""
    row = ToolRow(
        id="t1", name="api_tool", config={"actions": {"send": content}, **config}, actions=list(settings) or None
    )
    return resolve_actions(row, ConfiguredTool, [])[0]
