"""Deciding, resuming, submitting, parallel calls: cut at every await, nothing stays in flight or runs twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import anyio.lowlevel
import msgspec
import pytest

from engine import CallContext, Engine, InputRequired, ToolContext
from events import Approved, Executed, Failed, Paused
from tests.engine.cancelling import CANCELLERS, cut_at
from tests.engine.gating import APPROVED_FIRST, NUMBER
from tests.engine.staging import call, outcome_of, proved, row_of, staged, staged_engine, stream_of, tool_of

__all__ = ()

pytestmark = pytest.mark.anyio

WAITING = ("paused:awaiting_approval", "paused:requires_client_execution", "paused:requires_input")


@pytest.fixture(params=["native", "insistent", "scope"])
def canceller(request: pytest.FixtureRequest, anyio_backend_name: str) -> Any:
    """A way to cancel; asyncio's own only there."""
    if anyio_backend_name == "trio" and request.param != "scope":
        return CANCELLERS["scope"]
    return CANCELLERS[request.param]


class Marks:
    """A tool that notes each of its runs by its call."""

    def __init__(self) -> None:
        self.runs: list[str] = []

    async def run(self, context: ToolContext, n: int = 0) -> Any:
        self.runs.append(context.idempotency_key)
        await anyio.lowlevel.checkpoint()
        if n < 0 and context.answer is msgspec.UNSET:
            return InputRequired("which?")
        return n


def turn(at: int) -> CallContext:
    return CallContext(user_id="u", message_id=f"m{at}", client_tools=({"name": "client"},))


async def cut(canceller: Any, work: Callable[[int], Any], check: Callable[[int], Awaitable[None]], least: int) -> None:
    assert await cut_at(canceller, work, check) >= least


async def test_a_decision_is_made_or_not(sqlite_url: str, canceller: Any) -> None:
    marks = Marks()
    async with staged(sqlite_url, marks.run, wants_context=True, metadata=APPROVED_FIRST) as engine:
        for at in range(1, 60):
            await outcome_of(engine, call(), turn(at))

        async def decide(at: int) -> None:
            await engine.decide(f"m{at}:c1", approve=True, by="alice", user_id="u")

        async def check(at: int) -> None:
            row = await row_of(engine, f"m{at}:c1")
            assert row.gate in ("paused", "approved")
            assert row.version == (2 if row.gate == "paused" else 3)

        await cut(canceller, decide, check, 3)
        assert marks.runs == []
        await proved(engine)


async def test_a_resumed_call_ends_or_stays_approved(sqlite_url: str, canceller: Any) -> None:
    marks = Marks()
    async with staged(sqlite_url, marks.run, wants_context=True, metadata=APPROVED_FIRST) as engine:
        for at in range(1, 60):
            await outcome_of(engine, call(), turn(at))
            await engine.decide(f"m{at}:c1", approve=True, by="alice", user_id="u")

        async def resume(at: int) -> None:
            async with aclosing(engine.resume(f"m{at}:c1", turn(at))) as stream:
                async for _ in stream:
                    pass

        async def check(at: int) -> None:
            key = f"m{at}:c1"
            row, last = await row_of(engine, key), (await stream_of(engine, key))[-1]
            ran = key in marks.runs
            match last:
                case Approved():
                    assert row.gate == "approved"
                    assert not ran
                case Failed(kind="cancelled", message=message):
                    assert ("may have had its effect" in message) == ran
                case _:
                    assert isinstance(last, Executed)
                    assert ran
            assert marks.runs.count(key) <= 1

        await cut(canceller, resume, check, 6)
        await proved(engine)


async def test_a_clients_result_is_taken_or_still_waited_for(sqlite_url: str, canceller: Any) -> None:
    async with Engine.open(sqlite_url) as engine:
        for at in range(1, 60):
            await outcome_of(engine, call({}, name="client"), turn(at))

        async def submit(at: int) -> None:
            async with aclosing(engine.submit_result(f"m{at}:c1", "done", turn(at))) as stream:
                async for _ in stream:
                    pass

        async def check(at: int) -> None:
            last = (await stream_of(engine, f"m{at}:c1"))[-1]
            assert isinstance(last, Paused | Executed)

        await cut(canceller, submit, check, 3)
        await proved(engine)


async def test_an_answer_is_taken_or_still_waited_for(sqlite_url: str, canceller: Any) -> None:
    marks = Marks()
    async with staged(sqlite_url, marks.run, wants_context=True, parameters=NUMBER) as engine:
        for at in range(1, 60):
            assert isinstance(await outcome_of(engine, call({"n": -1}), turn(at)), Paused)
        asked = list(marks.runs)

        async def submit(at: int) -> None:
            async with aclosing(engine.submit_result(f"m{at}:c1", "that", turn(at))) as stream:
                async for _ in stream:
                    pass

        async def check(at: int) -> None:
            key = f"m{at}:c1"
            last = (await stream_of(engine, key))[-1]
            assert isinstance(last, Paused | Executed | Failed)
            assert not isinstance(last, Paused) or marks.runs.count(key) == 1
            # Its tool has been at work before it asked, whether or not it was run again.
            assert not isinstance(last, Failed) or "may have had its effect" in last.message

        await cut(canceller, submit, check, 5)
        assert all(marks.runs.count(key) <= 2 for key in asked)
        await proved(engine)


async def test_parallel_calls_all_end_or_were_never_proposed(sqlite_url: str, canceller: Any) -> None:
    marks = Marks()
    tools = [
        tool_of(marks.run, wants_context=True, parameters=NUMBER),
        tool_of(marks.run, name="gated", action="gated", wants_context=True, metadata=APPROVED_FIRST),
        tool_of(marks.run, name="live", action="live", wants_context=True, preview_decision=lambda *_: (False, False)),
        tool_of(marks.run, name="serial", action="serial", wants_context=True, parameters=NUMBER, serial=True),
    ]
    names = ["bump", "gated", "live", "serial", "serial"]
    async with staged_engine(sqlite_url, *tools) as engine:

        async def run(at: int) -> None:
            calls = [call({}, call_id=f"c{place}", name=name) for place, name in enumerate(names)]
            async with engine.execute_all(calls, turn(at)) as events:
                async for _ in events:
                    pass

        async def check(at: int) -> None:
            for place in range(len(names)):
                row = await engine.attempt(f"m{at}:c{place}", user_id="u")
                assert row is None or row.attempt.phase in (None, *WAITING)
                assert marks.runs.count(f"m{at}:c{place}") <= 1

        await cut(canceller, run, check, 12)
        await proved(engine)
