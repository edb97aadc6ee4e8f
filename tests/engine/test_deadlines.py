"""How a tool may end: in time or not, by any exception, in a thread that hangs (CASES EXECUTE-03, 04, 05, 07)."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import anyio
import anyio.from_thread
import pytest
from anyio.lowlevel import checkpoint

from engine import Engine, Settings, ToolResult
from engine.settings import Limits
from events import Executed, Failed
from events.types import StreamEvent
from tests.engine.staging import (
    CONTEXT,
    call,
    outcome_of,
    proved,
    row_of,
    staged,
    staged_engine,
    tool_of,
)
from tests.shape import ROOT

__all__ = ()

pytestmark = pytest.mark.anyio

caller_says: contextvars.ContextVar[str] = contextvars.ContextVar("caller_says", default="nothing")


async def failed_of(engine: Engine, **wanted: Any) -> Failed:
    event = await outcome_of(engine, call(**wanted))
    assert isinstance(event, Failed), event
    return event


async def test_an_async_tool_is_stopped_at_its_deadline(journal_url: str) -> None:
    stopped: list[bool] = []

    async def slow() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(True)

    async with staged(journal_url, slow, timeout=0.05) as engine:
        failed = await failed_of(engine)
        assert failed.kind == "timeout"
        assert "did not finish within 0.05 s" in failed.message
        assert "thread" not in failed.message
        assert stopped == [True]
        assert (await row_of(engine)).error == failed.message
        await proved(engine)


async def test_the_actions_own_timeout_overrides_the_class(sqlite_url: str) -> None:
    async def slow() -> None:
        await anyio.sleep_forever()

    async with staged(sqlite_url, slow, timeout=60.0, metadata={"timeout": 0.01}) as engine:
        assert "0.01 s" in (await failed_of(engine)).message


async def test_a_tool_that_breaks_when_it_is_stopped_was_late_all_the_same(sqlite_url: str) -> None:
    async def slow() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise OSError("cannot tidy up")

    async with staged(sqlite_url, slow, timeout=0.01) as engine:
        failed = await failed_of(engine)
        assert (failed.kind, failed.exception_type) == ("timeout", "OSError")
        assert "0.01 s" in failed.message
        assert "cannot tidy up" in failed.message


async def test_a_tool_that_finishes_past_its_deadline_has_finished(sqlite_url: str) -> None:
    async def stubborn() -> str:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            return "after all"
        return ""

    async with staged(sqlite_url, stubborn, timeout=0.01) as engine:
        executed = await outcome_of(engine, call())
        assert isinstance(executed, Executed)
        assert executed.result == "after all"
        # Nothing of its cancellation is left behind in the caller's task.
        await checkpoint()


class Hanging:
    """Sync tools: one hangs in its thread until it is let go; they say what their caller's context variable held."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.seen: list[str] = []
        self.finished: list[int] = []

    def hang(self) -> str:
        self.seen.append(caller_says.get())
        self.release.wait(30)
        self.finished.append(1)
        return "late"

    def quick(self) -> str:
        return caller_says.get()


async def beat(gaps: list[float]) -> None:
    """Note how long the loop takes from one turn to the next."""
    last = anyio.current_time()
    while True:
        await anyio.sleep(0.02)
        now = anyio.current_time()
        gaps.append(now - last)
        last = now


async def test_case_execute_07_sync_tools_with_a_time_limit(sqlite_url: str) -> None:
    """Sixty hung threads: each call ends in time, the loop runs on, other calls are not held up, nothing comes late."""
    hanging, gaps, ended = Hanging(), list[float](), list[StreamEvent]()

    async def one(engine: Engine, number: int) -> None:
        caller_says.set(f"caller {number}")
        ended.append(await outcome_of(engine, call(name="hang", call_id=f"c{number}")))

    slow = tool_of(hanging.hang, name="hang", action="hang", timeout=0.5)
    async with staged_engine(sqlite_url, slow, tool_of(hanging.quick, name="quick", action="quick")) as engine:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(beat, gaps)
            async with anyio.create_task_group() as calls:
                for number in range(60):
                    calls.start_soon(one, engine, number)
            caller_says.set("another caller")
            other = await outcome_of(engine, call(name="quick", call_id="other"))
            tasks.cancel_scope.cancel()
        assert isinstance(other, Executed)
        assert other.result == "another caller"
        assert len(ended) == 60
        assert {event.kind for event in ended if isinstance(event, Failed)} == {"timeout"}
        assert all("may still complete" in event.message for event in ended if isinstance(event, Failed))
        assert sorted(hanging.seen) == sorted(f"caller {number}" for number in range(60))
        assert len(gaps) > 1, "the loop ran on beside the hung threads"
        head = await engine.log.head()
        hanging.release.set()
        while len(hanging.finished) < 60:
            await checkpoint()
        assert await engine.log.head() == head, "a late finish adds nothing"
        await proved(engine)


async def test_without_a_free_thread_a_call_is_not_run(sqlite_url: str) -> None:
    release = threading.Event()
    ran: list[int] = []

    def hang() -> None:
        ran.append(1)
        release.wait(30)

    settings = Settings(limits=Limits(sync_threads=1))
    async with staged_engine(sqlite_url, tool_of(hang, timeout=0.1), settings=settings) as engine:
        await failed_of(engine, call_id="c1")
        second = await failed_of(engine, call_id="c2")
        assert second.kind == "timeout"
        assert "was not run" in second.message
        assert ran == [1]
        release.set()
        with anyio.fail_after(5):
            while not isinstance(await outcome_of(engine, call(call_id=f"n{anyio.current_time()}")), Executed):
                pass


async def test_a_sync_tool_reaches_back_into_the_loop(sqlite_url: str) -> None:
    """``anyio.from_thread`` works in its thread, and so does a loop of its own."""

    async def here() -> str:
        await checkpoint()
        return "here"

    def asks() -> list[str]:
        return [anyio.from_thread.run(here), anyio.run(here), asyncio.run(here_too())]

    async def here_too() -> str:
        await asyncio.sleep(0)
        return "here too"

    async with staged(sqlite_url, asks) as engine:
        executed = await outcome_of(engine, call())
        assert isinstance(executed, Executed), executed
        assert executed.result == ["here", "here", "here too"]


async def test_a_sync_tool_may_return_an_awaitable(sqlite_url: str) -> None:
    async def later() -> str:
        await checkpoint()
        return "later"

    def starts() -> Any:
        return later()

    async with staged(sqlite_url, starts) as engine:
        executed = await outcome_of(engine, call())
        assert isinstance(executed, Executed)
        assert executed.result == "later"


HANGS = """
import sys, time
sys.path.insert(0, sys.argv[1])
import anyio
from engine import CallContext, Engine, Tool, ToolCall, ToolRow

class Hang(Tool):
    name = "hang"
    timeout = 0.1
    def get_actions_metadata(self): return [{"name": "hang", "parameters": {}}]
    def get_config_requirements(self): return {}
    def execute_action(self, action_name, /, **kwargs): time.sleep(60)

async def main():
    async with Engine.open("null://", rows=[ToolRow(id="t", name="hang")], tools=[Hang]) as engine:
        print(*[type(event).__name__ async for event in engine.execute(ToolCall(name="hang"), CallContext())])

anyio.run(main, backend=sys.argv[2])
"""


def test_a_hung_tool_does_not_keep_the_process(anyio_backend_name: str) -> None:
    command = [sys.executable, "-P", "-c", HANGS, str(ROOT), anyio_backend_name]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL, check=False)
    assert (run.returncode, run.stdout.split()) == (0, ["Proposed", "Failed"]), run.stderr


async def test_iterators_are_the_tools_work(sqlite_url: str) -> None:
    def counts() -> Iterator[int]:
        yield from range(3)

    async def counts_later() -> AsyncIterator[int]:
        async def items() -> AsyncIterator[int]:
            for number in range(3):
                await checkpoint()
                yield number

        return items()

    async def counts_at_once() -> Iterator[int]:
        return iter(range(3))

    async def says_more() -> ToolResult:
        return ToolResult(iter(["no"]), status="error")

    tools = [
        tool_of(runs, name=runs.__name__, action=runs.__name__)
        for runs in (counts, counts_later, counts_at_once, says_more)
    ]
    async with staged_engine(sqlite_url, *tools) as engine:
        for name in ("counts", "counts_later", "counts_at_once"):
            executed = await outcome_of(engine, call(name=name, call_id=name))
            assert isinstance(executed, Executed)
            assert (executed.result, executed.status) == ([0, 1, 2], "completed")
        executed = await outcome_of(engine, call(name="says_more", call_id="more"))
        assert isinstance(executed, Executed)
        assert (executed.result, executed.status) == (["no"], "error")
        await proved(engine)


async def test_an_iterator_that_breaks_or_never_ends_is_the_tools_failure(sqlite_url: str) -> None:
    def breaks() -> Iterator[int]:
        yield 1
        raise OSError("half-way")

    async def hangs() -> AsyncIterator[int]:
        async def items() -> AsyncIterator[int]:
            yield 1
            await anyio.sleep_forever()

        return items()

    release = threading.Event()

    def blocks() -> Iterator[int]:
        yield 1
        release.wait(30)

    tools = [tool_of(runs, name=runs.__name__, action=runs.__name__, timeout=0.1) for runs in (breaks, hangs, blocks)]
    async with staged_engine(sqlite_url, *tools) as engine:
        broken = await failed_of(engine, name="breaks", call_id="c1")
        assert (broken.kind, broken.exception_type) == ("exception", "OSError")
        for name in ("hangs", "blocks"):
            assert (await failed_of(engine, name=name, call_id=name)).kind == "timeout"
        release.set()


async def test_consumers_that_are_slow_cost_the_tool_no_time(sqlite_url: str) -> None:
    """The deadline is the tool's: what its consumer does between the events does not count."""

    async def quick() -> str:
        return "quick"

    async with (
        staged(sqlite_url, quick, timeout=0.2) as engine,
        aclosing(engine.execute(call(), CONTEXT)) as stream,
    ):
        await anext(stream)
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            pass
        assert isinstance(await anext(stream), Executed)
