"""Every way to leave a stream, and every kind of tool that may be running then (CASES EXECUTE-01)."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from engine import CallContext, Engine
from events import Executed, Failed, Proposed
from tests.engine.staging import (
    CONTEXT,
    call,
    events_of,
    outcome_of,
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


async def leave_by_break(stream: Any, events: int) -> None:
    async for _ in stream:
        events -= 1
        if not events:
            break
    await stream.aclose()


async def leave_by_closing(stream: Any, events: int) -> None:
    for _ in range(events):
        await anext(stream)
    await stream.aclose()
    await stream.aclose()


async def leave_by_an_error(stream: Any, events: int) -> None:
    async def consume(left: int) -> None:
        async with aclosing(stream):
            async for _ in stream:
                left -= 1
                if not left:
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await consume(events)


async def leave_by_a_timeout(stream: Any, events: int) -> None:
    with anyio.move_on_after(0) as scope:
        async with aclosing(stream):
            with anyio.CancelScope(shield=True):
                for _ in range(events):
                    await anext(stream)
            await anyio.sleep_forever()
    assert scope.cancelled_caught


async def leave_in_another_task(stream: Any, events: int) -> None:
    for _ in range(events):
        await anext(stream)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.aclose)


LEAVING = [leave_by_break, leave_by_closing, leave_by_an_error, leave_by_a_timeout, leave_in_another_task]


@pytest.mark.parametrize("leave", LEAVING)
async def test_case_stream_04_left_after_each_event(
    sqlite_url: str, leave: Callable[[Any, int], Awaitable[None]]
) -> None:
    watched = Watched()
    async with staged(sqlite_url, watched.works, parameters=NAMED) as engine:
        for count in (1, 2):
            context = CallContext(user_id="u", message_id=f"m{count}")
            await leave(engine.execute(call({"name": f"n{count}"}), context), count)
        after_proposed = await stream_of(engine, "m1:c1")
        assert [type(event) for event in after_proposed] == [Proposed, Failed]
        assert isinstance(after_proposed[1], Failed)
        assert after_proposed[1].kind == "cancelled"
        assert "was not run" in after_proposed[1].message
        assert [type(event) for event in await stream_of(engine, "m2:c1")] == [Proposed, Executed]
        assert watched.called == ["n2"]
        await proved(engine)


@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_case_stream_04_dropped_and_collected(journal_url: str) -> None:
    watched = Watched()
    async with staged(journal_url, watched.works, parameters=NAMED) as engine:
        async for _ in engine.execute(call({"name": "n"}), CONTEXT):
            break
        gc.collect()
        with anyio.fail_after(5):
            while (await row_of(engine)).status == "proposed":
                await checkpoint()
        assert (await row_of(engine)).status == "failed"
        assert watched.called == []
        await proved(engine)


async def test_a_stream_that_never_began_leaves_nothing(sqlite_url: str) -> None:
    async with staged(sqlite_url, Watched().works, parameters=NAMED) as engine:
        stream = engine.execute(call({"name": "n"}), CONTEXT)
        await stream.aclose()
        assert await engine.log.head() == 0


@pytest.mark.parametrize("events", [1, 2])
async def test_an_engine_that_is_closed_closes_what_is_in_flight(journal_url: str, events: int) -> None:
    watched = Watched()
    tool = tool_of(watched.works, parameters=NAMED)
    async with staged_engine(journal_url, tool) as engine:
        stream = engine.execute(call({"name": "n"}), CONTEXT)
        for _ in range(events):
            await anext(stream)
    await stream.aclose()
    async with staged_engine(journal_url, tool) as engine:
        assert (await row_of(engine)).status == ("failed", "executed")[events - 1]
        await proved(engine)


async def test_case_execute_01_cancel_in_mid_tool(journal_url: str) -> None:
    """One call has finished, one runs when its task is cancelled; every call of the turn has its end."""
    running = anyio.Event()

    async def fast() -> str:
        return "fast"

    async def slow() -> None:
        running.set()
        await anyio.sleep_forever()

    tools = [tool_of(fast, name="fast", action="fast"), tool_of(slow, name="slow", action="slow")]
    propagated: list[bool] = []

    async def agent(engine: Engine) -> None:
        try:
            await events_of(engine, call(name="fast", call_id="c1"))
            await events_of(engine, call(name="slow", call_id="c2"))
        except anyio.get_cancelled_exc_class():
            propagated.append(True)
            raise

    async with staged_engine(journal_url, *tools) as engine:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent, engine)
            await running.wait()
            tasks.cancel_scope.cancel()
        assert propagated == [True]
        fast_row, slow_row = await row_of(engine, "m:c1"), await row_of(engine, "m:c2")
        assert (fast_row.status, fast_row.result) == ("executed", "fast")
        assert (slow_row.status, "cancelled" in str(slow_row.error)) == ("failed", True)
        assert [type(event) for event in await stream_of(engine, "m:c2")] == [Proposed, Failed]
        # The conversation goes on: the next request has a result for each call, the real one and an error.
        told = await engine.tool_results("m", user_id="u")
        assert [message["tool_call_id"] for message in told] == ["c1", "c2"]
        assert told[0]["content"] == "fast"
        assert told[1]["content"].startswith("Error: The call was cancelled")
        later = CallContext(user_id="u", message_id="m2")
        assert isinstance(await outcome_of(engine, call(name="fast"), later), Executed)
        await proved(engine)


async def test_cancelled_sync_tools_may_have_had_their_effect(sqlite_url: str) -> None:
    begun, release = threading.Event(), threading.Event()

    def hang() -> str:
        begun.set()
        release.wait(10)
        return "late"

    async with staged(sqlite_url, hang) as engine:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(events_of, engine, call()))
            while not begun.is_set():
                await checkpoint()
            tasks.cancel_scope.cancel()
        release.set()
        _, failed = await stream_of(engine)
        assert isinstance(failed, Failed)
        assert failed.kind == "cancelled"
        assert "may have had its effect" in failed.message


async def test_a_sync_tool_that_has_returned_is_executed_cancelled_or_not(sqlite_url: str) -> None:
    """Its thread was done before the cancellation came, though its loop had not heard of it yet."""
    done = threading.Event()

    def work() -> str:
        done.set()
        return "done"

    async with staged(sqlite_url, work) as engine:
        scope = anyio.CancelScope()

        async def consume() -> None:
            with scope:
                await events_of(engine, call())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume)
            while not done.is_set():
                await checkpoint()
            # The loop stands still until the thread has handed its result over.
            ended = threading.Event()
            ended.wait(0.3)
            scope.cancel()
        _, executed = await stream_of(engine)
        assert isinstance(executed, Executed)
        assert executed.result == "done"


async def test_a_tool_that_catches_its_callers_cancellation_does_not_call_it_off(
    sqlite_url: str, anyio_backend_name: str
) -> None:
    running = anyio.Event()

    async def stubborn() -> str:
        running.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            return "caught"
        return ""

    reached: list[str] = []

    async with staged(sqlite_url, stubborn) as engine:

        async def agent() -> None:
            await events_of(engine, call())
            await checkpoint()
            reached.append("the end")

        if anyio_backend_name == "asyncio":
            task = asyncio.ensure_future(agent())
            await running.wait()
            task.cancel()
            await asyncio.wait((task,))
            assert task.cancelled()
        else:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(agent)
                await running.wait()
                tasks.cancel_scope.cancel()
        assert reached == []
        _, executed = await stream_of(engine)
        assert isinstance(executed, Executed)
        assert executed.result == "caught"
