"""Calls that wait, and tools that run long, hold nothing that others need (CASES, JOURNAL-06)."""

from __future__ import annotations

from contextlib import AsyncExitStack

import anyio
import anyio.lowlevel
import pytest
from sqlalchemy import text

from engine import CallContext
from events import Approved, Executed, LogUnavailable, Paused
from tests.engine.gating import APPROVED_FIRST, resumed
from tests.engine.staging import CONTEXT, call, events_of, outcome_of, proved, row_of, staged_engine, stream_of, tool_of

__all__ = ()

pytestmark = pytest.mark.anyio

CALLS = 20
IDLE = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'"


class Crane:
    """A tool that works for as long as its test likes."""

    def __init__(self) -> None:
        self.running = 0
        self.release = anyio.Event()

    async def lift(self) -> str:
        self.running += 1
        await self.release.wait()
        return "lifted"


async def fine() -> str:
    return "fine"


async def test_case_journal_06_an_approval_and_a_new_call_are_journalled_at_once(journal_url: str) -> None:
    """Twenty calls wait for approval, twenty tools run, twenty streams are held open after their first event."""
    crane = Crane()
    tools = [
        tool_of(crane.lift, name="crane", action="lift"),
        tool_of(fine, name="gated", action="gated", metadata=APPROVED_FIRST),
        tool_of(fine, name="plain", action="plain"),
    ]
    async with staged_engine(journal_url, *tools) as engine, AsyncExitStack() as stack:
        async with anyio.create_task_group() as tasks:
            for number in range(CALLS):
                tasks.start_soon(outcome_of, engine, call(name="lift", call_id=f"r{number}"))
                assert isinstance(await outcome_of(engine, call(name="gated", call_id=f"w{number}")), Paused)
                stream = engine.execute(call(name="plain", call_id=f"h{number}"), CONTEXT)
                stack.push_async_callback(stream.aclose)
                await anext(stream)
            while crane.running < CALLS:
                await anyio.lowlevel.checkpoint()
            if engine.log.store.dialect == "postgresql":
                assert (await engine.log.store.read(text(IDLE)))[0][0] == 0
            with anyio.fail_after(10):
                approval = await engine.decide("m:w3", approve=True, by="alice", user_id="u")
                assert isinstance(approval, Approved)
                assert isinstance(await resumed(engine, "m:w3"), Executed)
                later = CallContext(user_id="u", message_id="m2")
                assert isinstance(await outcome_of(engine, call(name="plain"), later), Executed)
            assert crane.running == CALLS
            crane.release.set()
        assert (await row_of(engine, "m:w4")).gate == "paused"
        assert (await row_of(engine, "m:r7")).status == "executed"
        await stack.aclose()
        await proved(engine)


@pytest.mark.postgres
async def test_case_journal_06_a_pool_without_a_free_connection_is_a_typed_error(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And leaves no call half recorded: what could be written is whole, and the call can be made again."""
    monkeypatch.setattr("events.postgres_pool._CHECKOUT_TIMEOUT", 0.2)
    async with staged_engine(postgres_url, tool_of(fine)) as engine:
        first = await events_of(engine, call())
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(engine.log.store.read, text("SELECT pg_sleep(3)"))
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(10):
                with pytest.raises(LogUnavailable, match="all 5 connections are busy"):
                    await events_of(engine, call())
                # Proposing and closing a call needs none of them.
                assert isinstance(await outcome_of(engine, call(call_id="c2")), Executed)
        assert await events_of(engine, call()) == first
        assert len(await stream_of(engine)) == 2
        await proved(engine)
