"""A tool that must be configured, rows of it, and engines that keep their rows in the journal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, ClassVar

import pytest

from engine import CallContext, Engine, Settings, Tool, ToolManager, ToolRow
from engine.credentials import MasterKeys
from engine.defaults import default_rows
from events import Refused
from tests.engine.staging import staged_engine

__all__ = ("CANARY", "KEYS", "Clock", "Weather", "names_of", "refused", "row", "storing")

CANARY = "canary-5c1e"
KEYS = MasterKeys("k1", {"k1": b"1" * 32})


class Weather(Tool):
    """Says what it was configured with and given; its second action writes."""

    name = "weather"
    made: ClassVar[list[Tool]] = []

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        days = {"type": "integer", "minimum": 1}
        parameters = {"type": "object", "properties": {"city": {"type": "string"}, "days": days}, "required": ["city"]}
        names = self.config.get("offers", ["forecast", "warn"])
        return [{"name": name, "description": f"It {name}s.", "parameters": parameters} for name in names]

    def get_config_requirements(self) -> dict[str, Any]:
        return {
            "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
            "auth_type": {"type": "string", "enum": ["none", "bearer", "basic"], "default": "none"},
            "api_key": {"type": "string", "secret": True, "required": True, "depends_on": {"auth_type": "bearer"}},
            "user": {"required": True, "depends_on": {"auth_type": ["basic"]}},
            "scale": {"type": "number", "minimum": 0.5, "maximum": 2},
            "retries": {"type": "integer"},
            "strict": {"type": "boolean"},
            "offers": {"type": "array"},
            "headers": {"type": "object"},
            "timeout": {"type": "integer"},
        }

    async def execute_action(self, action_name: str, /, **kwargs: Any) -> Any:
        return {"unit": self.config.get("unit"), "key": "api_key" in self.config, "did": action_name, **kwargs}


class Clock(Tool):
    """On by default."""

    name = "clock"
    default_on = True

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        return [{"name": "tell", "parameters": {"type": "object", "properties": {}}}]

    def get_config_requirements(self) -> dict[str, Any]:
        return {}

    async def execute_action(self, action_name: str, /, **kwargs: Any) -> str:
        return "noon"


def row(row_id: str = "w1", name: str = "weather", **facts: Any) -> ToolRow:
    """Return a row to be added."""
    return ToolRow(id=row_id, name=name, **facts)


@asynccontextmanager
async def storing(url: str, *tools: type[Tool], rows: tuple[ToolRow, ...] = ()) -> AsyncIterator[Engine]:
    """Open an engine that knows these tools besides ``Weather`` and ``Clock``, and whose rows are in the journal."""
    settings = Settings(master_keys=KEYS)
    async with staged_engine(url, Weather, Clock, *tools, rows=rows, settings=settings) as engine:
        yield engine


async def names_of(engine: Engine, user_id: str | None = "u", **context: Any) -> list[str]:
    """Return the names that a turn's model sees, without those of default tools."""
    prepared = await engine.prepare_tools_for_llm(CallContext(user_id=user_id, **context))
    return [name for name, (tool_id, _) in prepared.names.items() if tool_id not in _defaults()]


@cache
def _defaults() -> frozenset[str]:
    return frozenset(row.id for row in default_rows(ToolManager(extra=[Clock])))


async def refused(work: Any, *words: str, kind: type[Exception] = Refused) -> str:
    """Await what must be refused in these words, which show no secret, and return what was said."""
    with pytest.raises(kind) as caught:
        await work
    said = str(caught.value)
    assert [word for word in words if word not in said] == [], said
    assert CANARY not in said
    return said
