"""Names that no database stores, wherever something is looked up: nobody's, and never a crash."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from engine import Engine
from events import Refused
from tests.engine.staging import call, events_of, proved, staged

__all__ = ()

pytestmark = pytest.mark.anyio

HALF = "half\ud800"

LOOKING: dict[str, Callable[[Engine], Awaitable[Any]]] = {
    "attempt": lambda engine: engine.attempt(HALF, user_id="u"),
    "attempt's user": lambda engine: engine.attempt("m:c1", user_id=HALF),
    "confirm": lambda engine: engine.confirm(HALF, user_id="u"),
    "tool_results": lambda engine: engine.tool_results(HALF, user_id="u"),
    "versions": lambda engine: engine.rules.versions(HALF, user_id="u"),
    "revoke": lambda engine: engine.rules.revoke(HALF, user_id="u"),
}


async def test_half_a_character_is_refused(journal_url: str) -> None:
    async with staged(journal_url, dict) as engine:
        await events_of(engine, call())
        for look in LOOKING.values():
            with pytest.raises(Refused, match="surrogate"):
                await look(engine)
        await proved(engine)
