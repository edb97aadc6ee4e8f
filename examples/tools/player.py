"""Who plays: answers `get_player_name`."""

from __future__ import annotations

import getpass
from typing import Any

from engine import Tool


class Player(Tool):
    """Knows the player: whoever is logged in at this machine."""

    name = "player"
    description = "Knows the player's name."
    effect = "read"
    idempotent = True

    def execute_action(self, action_name: str, /, **kwargs: Any) -> Any:
        """Look the name up."""
        return getpass.getuser()

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        """Return the one action."""
        nothing = {"type": "object", "properties": {}, "additionalProperties": False}
        return [{"name": "get_player_name", "description": "Get the player's name.", "parameters": nothing}]

    def get_config_requirements(self) -> dict[str, Any]:
        """Nothing need be configured."""
        return {}
