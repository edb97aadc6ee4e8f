"""A tool that does nothing, so that what is measured is everything around a tool."""

from __future__ import annotations

from typing import Any

from engine.contract import Tool
from engine.rows import ToolRow

__all__ = ("NOOP_ROW", "Noop")


class Noop(Tool):
    """One action, ``run``, which returns at once."""

    name = "noop"

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Describe the action."""
        parameters = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
        return [{"name": "run", "description": "Does nothing.", "parameters": parameters}]

    def get_config_requirements(self) -> dict[str, Any]:
        """Need nothing."""
        return {}

    async def execute_action(self, action_name: str, /, **kwargs: Any) -> str:  # noqa: ARG002
        """Do nothing."""
        return "ok"


NOOP_ROW = ToolRow(id="t1", name="noop", user_id="user-1")
