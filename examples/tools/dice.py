"""A die: answers `roll_dice`."""

from __future__ import annotations

import random
from typing import Any

from engine import Tool


class Dice(Tool):
    """Rolls a six-sided die. Every roll is another one, so it is not idempotent."""

    name = "dice"
    description = "Rolls a six-sided die."
    effect = "read"

    def execute_action(self, action_name: str, /, **kwargs: Any) -> Any:
        """Roll."""
        return {"sides": 6, "rolled": random.randint(1, 6)}

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Return the one action."""
        nothing = {"type": "object", "properties": {}, "additionalProperties": False}
        return [{"name": "roll_dice", "description": "Roll a six-sided die.", "parameters": nothing}]

    def get_config_requirements(self) -> dict[str, Any]:
        """Nothing need be configured."""
        return {}
