"""A folder with a tool that must be configured, and a journal for its rows."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import Called, Ended

__all__ = ("CANARY", "WEATHER", "Commands", "prepared", "weather_folder")

CANARY = "canary-2b9f"
WEATHER = """
import json
from pathlib import Path

from engine import Tool


class Weather(Tool):
    name = "weather"
    description = "Looks out of the window."

    def get_actions_metadata(self):
        told = Path(__file__).with_name("offers.json")
        if told.exists():
            return json.loads(told.read_text())
        city = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
        return [{"name": "forecast", "parameters": city | {"required": ["city"]}}, {"name": "warn", "parameters": {}}]

    def get_config_requirements(self):
        bearer = {"auth_type": "bearer"}
        return {
            "auth_type": {"type": "string", "enum": ["none", "bearer"], "required": True},
            "api_key": {"type": "string", "secret": True, "required": True, "depends_on": bearer},
            "timeout": {"type": "integer"},
            "places": {"type": "array"},
            "note": {},
        }

    async def execute_action(self, action_name, /, **kwargs):
        return {"key": "api_key" in self.config, "did": action_name, **kwargs}
"""


def weather_folder(place: Path) -> Path:
    """Return a new folder that holds the tool."""
    folder = place / "own"
    folder.mkdir()
    (folder / "weather.py").write_text(WEATHER)
    return folder


class Commands:
    """The command on one journal, with the tool's folder."""

    def __init__(self, called: Called, database: str, folder: Path) -> None:
        self.database = database
        self.folder = folder
        self._called = called

    def __call__(self, *arguments: str | Path, user: str = "u") -> Ended:
        shared = ("--database", self.database, "--tools", self.folder, "--user", user)
        return self._called(*shared, *arguments)

    def done(self, *arguments: str | Path, user: str = "u") -> Ended:
        """Return how a command ended that has done its work, and has shown no secret."""
        ended = self(*arguments, user=user)
        assert ended.code == 0, ended
        assert CANARY not in ended.out + ended.err
        return ended


def prepared(called: Called, database: str, place: Path) -> Commands:
    """Return the commands on a new journal."""
    assert called("migrate", "--database", database).code == 0
    return Commands(called, database, weather_folder(place))
