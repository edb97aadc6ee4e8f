"""A consumer that goes away, at any moment and in any way, never leaves a call in flight (DESIGN 6, Cancellation)."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from engine import CallContext, Engine, ResultGuard
from engine.guards import Pass
from events import Confirmed, Denied, Executed, Failed, Paused, Proposed
from events.types import StreamEvent
from tests.engine.cancelling import CANCELLERS, cut_at
from tests.engine.staging import (
    CONTEXT,
    call,
    events_of,
    proved,
    row_of,
    staged,
    staged_engine,
    stream_of,
    tool_of,
)
from tests.engine.watching import NAMED, Watched

__all__ = ()

pytestmark = pytest.mark.anyio

ENDED = (None, "paused:awaiting_approval", "paused:requires_client_execution")


class Consumer:
    """One call per k, and what must hold of it afterwards."""

    def __init__(self, engine: Engine, tool: Watched, turn: str, exact: bool, bare: bool) -> None:
        self.engine = engine
        self.bare = bare
        self.exact = exact
        self.tool = tool
        self.turn = turn
        self.seen: dict[int, list[StreamEvent]] = {}

    def name(self, at: int) -> str:
        return f"{self.turn}{at}"

    async def consume(self, at: int) -> None:
        seen = self.seen[at] = []
        context = CallContext(user_id="u", message_id=None if self.bare else self.name(at))
        wanted = call({"name": self.name(at)}, call_id=self.name(at))
        async with aclosing(self.engine.execute(wanted, context)) as stream:
            async for event in stream:
                seen.append(event)
                await checkpoint()

    async def check(self, at: int) -> None:
        name, seen = self.name(at), self.seen[at]
        key = name if self.bare else f"{name}:{name}"
        row = await self.engine.attempt(key, user_id="u")
        stream = [event for event in await stream_of(self.engine, key) if not isinstance(event, Confirmed)]
        assert seen == stream[: len(seen)], "what was yielded is in the log"
        assert self.tool.called.count(name) <= 1
        if row is None:
            assert name not in self.tool.called
            return
        assert row.attempt.phase in ENDED, row
        last = stream[-1]
        if name in self.tool.returned:
            assert isinstance(last, Executed)
            assert last.result == name
        if isinstance(last, Failed) and last.kind == "cancelled" and self.exact:
            assert ("may have had its effect" in last.message) == (name in self.tool.called)


async def cut_everywhere(engine: Engine, tool: Watched, canceller: str, exact: bool = True, bare: bool = False) -> int:
    consumer = Consumer(engine, tool, f"{canceller}{bare}", exact, bare)
    count = await cut_at(CANCELLERS[canceller], consumer.consume, consumer.check)
    await proved(engine)
    return count


def cancellers(anyio_backend_name: str) -> list[str]:
    return list(CANCELLERS) if anyio_backend_name == "asyncio" else ["scope"]


async def test_case_stream_04_cancelled_at_every_await(journal_url: str, anyio_backend_name: str) -> None:
    watched = Watched()
    async with staged(journal_url, watched.works, parameters=NAMED) as engine:
        for canceller in cancellers(anyio_backend_name):
            for bare in (False, True):
                count = await cut_everywhere(engine, watched, canceller, bare=bare)
                assert count >= 7, "the two appends, three checkpoints of the tool, two of the consumer"
    assert 1 < len(watched.returned) < len(watched.called)


@pytest.mark.parametrize("method", ["tidies", "raises", "blocks", "yields"])
async def test_whatever_the_tool_is_like(sqlite_url: str, anyio_backend_name: str, method: str) -> None:
    watched = Watched()
    async with staged(sqlite_url, getattr(watched, method), parameters=NAMED) as engine:
        for canceller in cancellers(anyio_backend_name):
            # A thread may begin after all when its call is closed already.
            assert await cut_everywhere(engine, watched, canceller, exact=method != "blocks") >= 4
    assert watched.called


class Slow(ResultGuard):
    """Takes a few turns of the loop to look."""

    async def inspect(self, text: str, call: Any, /) -> Pass:
        for _ in range(3):
            await checkpoint()
        return Pass()


async def test_a_guard_is_waited_for_once_the_tool_has_returned(sqlite_url: str, anyio_backend_name: str) -> None:
    watched = Watched()
    tool = tool_of(watched.works, parameters=NAMED, get_artifact_id=lambda self, action, **kwargs: "a1")
    async with staged_engine(sqlite_url, tool, guards=[Slow()]) as engine:
        for canceller in cancellers(anyio_backend_name):
            await cut_everywhere(engine, watched, canceller)
        kept = [event async for event in engine.log.read(user_id="u")]
    executed = [record.event for record in kept if isinstance(record.event, Executed)]
    assert len(executed) == len(watched.returned)
    assert {event.artifact_id for event in executed} == {"a1"}


async def test_a_call_that_waits_keeps_waiting(sqlite_url: str, anyio_backend_name: str) -> None:
    watched = Watched()
    async with staged(sqlite_url, watched.works, parameters=NAMED, metadata={"require_approval": True}) as engine:
        for canceller in cancellers(anyio_backend_name):
            await cut_everywhere(engine, watched, canceller)
        kept = [record.event async for record in engine.log.read(user_id="u")]
    assert watched.called == []
    # Both in one append: there is no proposal without its pause, and nothing after it.
    assert [type(event) for event in kept] == [Proposed, Paused] * (len(kept) // 2)


async def test_somebody_elses_call_is_never_closed(journal_url: str) -> None:
    """Cancelled while proposing under a key that another call has taken: that one goes on."""
    watched = Watched()
    async with (
        staged(journal_url, watched.works, parameters=NAMED) as one,
        staged(journal_url, watched.works, parameters=NAMED) as two,
    ):
        async with aclosing(one.execute(call({"name": "first"}), CONTEXT)) as stream:
            opening = await anext(stream)

            async def rival(_at: int) -> None:
                async with aclosing(two.execute(call({"name": "first"}), CONTEXT)) as other:
                    async for _ in other:
                        pass

            async def untouched(_at: int) -> None:
                row = await row_of(one)
                assert (row.status, row.gate, row.version) == ("proposed", "open", 1)

            await cut_at(CANCELLERS["scope"], rival, untouched)
            outcome = await anext(stream)
        assert isinstance(outcome, Executed)
        assert await stream_of(two) == [opening, outcome]
        assert watched.called == ["first"]
        await proved(two)


async def test_a_refused_repetition_is_whole_or_not_there(sqlite_url: str) -> None:
    watched = Watched()
    async with staged(sqlite_url, watched.works, parameters=NAMED) as engine:
        async with aclosing(engine.execute(call({"name": "first"}), CONTEXT)) as stream:
            await anext(stream)

            async def again(_at: int) -> None:
                await events_of(engine, call({"name": "first"}))

            async def check(_at: int) -> None:
                open_rows = [
                    record.key async for record in engine.log.read(user_id="u") if isinstance(record.event, Proposed)
                ]
                for key in open_rows[1:]:
                    assert [type(event) for event in await stream_of(engine, key)] == [Proposed, Denied]

            await cut_at(CANCELLERS["scope"], again, check)
            assert isinstance(await anext(stream), Executed)
        await proved(engine)


async def test_a_dead_workers_call_is_closed_or_not(sqlite_url: str) -> None:
    """Cancelled while it closes what a dead worker left: it is closed once, or found again."""
    watched = Watched()
    async with staged(sqlite_url, watched.works, parameters=NAMED, idempotent=True) as engine:

        async def lost(at: int) -> None:
            template = await outcome_template(engine)
            left = partial(_left_behind, template)
            await engine.log.append(f"d{at}:c", [left(at)], 0, "u")

        async def repeat(at: int) -> None:
            with anyio.CancelScope(shield=True):
                await lost(at)
            context = CallContext(user_id="u", message_id=f"d{at}")
            await events_of(engine, call({"name": "t"}, call_id="c"), context)

        async def check(at: int) -> None:
            row = await row_of(engine, f"d{at}:c")
            assert row.status in ("failed", "executed", "proposed")
            if row.status == "proposed":
                # Not touched yet: the next repetition deals with it.
                assert row.version == 1
                context = CallContext(user_id="u", message_id=f"d{at}")
                await events_of(engine, call({"name": "t"}, call_id="c"), context)
                assert (await row_of(engine, f"d{at}:c")).status == "executed"

        await outcome_template(engine)
        count = await cut_at(CANCELLERS["scope"], repeat, check)
        assert count > 3
        await proved(engine)


async def outcome_template(engine: Engine) -> Proposed:
    context = CallContext(user_id="u", message_id="template")
    proposed, _ = await events_of(engine, call({"name": "t"}, call_id="c"), context)
    assert isinstance(proposed, Proposed)
    return proposed


def _left_behind(template: Proposed, at: int) -> Proposed:
    return replace(template, id=f"left-{at}", key=f"d{at}:c", message_id=f"d{at}", worker="worker-gone", position=None)
