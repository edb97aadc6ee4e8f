"""``think``: a place for the model to write its reasoning down."""

from __future__ import annotations

from typing import Any, ClassVar

from engine.contract import Tool, ToolResult

__all__ = ("LONGEST", "Think")

LONGEST = 20_000
"""Characters of one piece of reasoning."""


class Think(Tool):
    """Takes reasoning and answers "Continue."; the journal is what keeps it."""

    name = "think"
    display_name = "Think"
    description = "Write reasoning down before going on; changes nothing."
    internal = True
    effect = "read"
    idempotent = True
    limits: ClassVar[tuple[str, ...]] = (f"{LONGEST:,} characters of reasoning",)
    errors: ClassVar[tuple[str, ...]] = (
        "Error: reasoning is required, as text.",
        f"Error: The reasoning has N characters; at most {LONGEST} are taken. Shorten it.",
    )

    def execute_action(self, action_name: str, /, **kwargs: Any) -> Any:
        """Answer the model. Reasoning that is missing, no text, or too long is an error result."""
        reasoning = kwargs.get("reasoning")
        if action_name != "reason":
            return ToolResult(f"Error: Unknown action '{action_name}'. There is: reason.", status="error")
        if not isinstance(reasoning, str):
            return ToolResult("Error: reasoning is required, as text.", status="error")
        if len(reasoning) > LONGEST:
            said = f"Error: The reasoning has {len(reasoning)} characters; at most {LONGEST} are taken. Shorten it."
            return ToolResult(said, status="error")
        return "Continue."

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Return the one action, ``reason``."""
        return [
            {
                "name": "reason",
                "description": "Write down your reasoning about the task so far. Nothing is looked up or changed.",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "reasoning": {
                            "type": "string",
                            "maxLength": LONGEST,
                            "description": f"Your reasoning, at most {LONGEST} characters.",
                        }
                    },
                    "required": ["reasoning"],
                    "additionalProperties": False,
                },
            }
        ]

    def get_config_requirements(self) -> dict[str, Any]:
        """Return nothing: there is nothing to configure."""
        return {}
