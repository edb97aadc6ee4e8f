"""A small register of people: answers `retrieve_entity_info`."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from engine import Tool, ToolResult

AGES = MappingProxyType({"Alice": 38, "Bob": 41, "Charlie": 9, "Daisy": 6})


class Family(Tool):
    """Knows the members of a family. Async, as most real tools are."""

    name = "family"
    description = "Knows the members of a family and their ages."
    effect = "read"
    idempotent = True

    async def execute_action(self, action_name: str, /, **kwargs: Any) -> Any:
        """Look a person up; an unknown one is an error result, which the model can act upon."""
        name = kwargs["name"]
        if name not in AGES:
            return ToolResult(f"Error: nobody is called {name!r}. There are: {', '.join(AGES)}.", status="error")
        return {"name": name, "age": AGES[name]}

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Return the one action."""
        named = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        return [{"name": "retrieve_entity_info", "description": "Get what is known of a person.", "parameters": named}]

    def get_config_requirements(self) -> dict[str, Any]:
        """Nothing need be configured."""
        return {}
