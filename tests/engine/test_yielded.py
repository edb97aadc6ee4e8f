"""Whatever an engine yields is in the log by then, where everybody else can read it (DESIGN 8, 1)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from engine import CallContext, Engine
from events import Denied, EventLog, Executed, Failed, Paused, Proposed
from events.types import StreamEvent
from tests.engine.gating import headless
from tests.engine.staging import CONTEXT, bare, call, staged_engine, tool_of
from tests.logs import opened

__all__ = ()

pytestmark = pytest.mark.anyio

CLIENT = CallContext(
    user_id="u", message_id="c", client_tools=({"type": "function", "function": {"name": "draw", "parameters": {}}},)
)
HOW = {"type": "object", "properties": {"how": {"type": "string"}}}


async def behaves(how: str = "well") -> Any:
    if how == "badly":
        raise ValueError("boom")
    return {"behaved": how}


@asynccontextmanager
async def watched_by(url: str, **metadata: Any) -> AsyncIterator[tuple[Engine, EventLog]]:
    """Open an engine, and the same database once more as somebody else would."""
    tool = tool_of(behaves, parameters=HOW, metadata=metadata)
    async with staged_engine(url, tool) as engine, opened(url) as other:
        yield engine, other


async def read_at_once(log: EventLog, stream: AsyncGenerator[StreamEvent, None]) -> list[type[StreamEvent]]:
    """Go through a stream, look each event up in another log on the same database, and return the kinds."""
    kinds = []
    async with aclosing(stream) as events:
        async for event in events:
            there = [record.event async for record in log.read_stream(event.key, user_id="u")]
            assert event in there, f"{event!r} was yielded, and the log has {there!r}"
            kinds.append(type(event))
    return kinds


async def test_what_is_yielded_can_be_read_by_others(journal_url: str) -> None:
    async with watched_by(journal_url) as (engine, other):
        assert await read_at_once(other, engine.execute(call({}), CONTEXT)) == [Proposed, Executed]
        assert await read_at_once(other, engine.execute(call({}), bare)) == [Proposed, Executed]
        failing = engine.execute(call({"how": "badly"}, call_id="c2"), CONTEXT)
        assert await read_at_once(other, failing) == [Proposed, Failed]
        nameless = engine.execute(call({}, call_id="c3", name="nothing"), CONTEXT)
        assert await read_at_once(other, nameless) == [Proposed, Failed]


async def test_what_is_yielded_of_gated_calls_can_be_read_by_others(journal_url: str) -> None:
    async with watched_by(journal_url, require_approval=True) as (engine, other):
        assert await read_at_once(other, engine.execute(call({}), headless)) == [Proposed, Denied]
        assert await read_at_once(other, engine.execute(call({}), CONTEXT)) == [Proposed, Paused]
        decision = await engine.decide("m:c1", approve=True, by="ada", user_id="u")
        assert decision in [record.event async for record in other.read_stream("m:c1", user_id="u")]
        assert await read_at_once(other, engine.resume("m:c1", CONTEXT)) == [Executed]
        assert await read_at_once(other, engine.execute(call({}, name="draw"), CLIENT)) == [Proposed, Paused]
        assert await read_at_once(other, engine.submit_result("c:c1", "drawn", CLIENT)) == [Executed]
