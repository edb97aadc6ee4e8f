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
from functools import partial
from typing import Any

import anyio
import anyio.from_thread
import pytest
from anyio.lowlevel import checkpoint

from engine import CallContext, Engine, Settings, ToolResult
from engine.settings import Limits
from events import Executed, Failed, Proposed
from events.types import StreamEvent
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


async def test_a_tools_own_timeout_is_its_exception(sqlite_url: str) -> None:
    async def gives_up() -> None:
        with anyio.fail_after(0):
            await anyio.sleep_forever()

    async def says_so() -> None:
        raise TimeoutError("the server is slow")

    for runs in (gives_up, says_so):
        async with staged(sqlite_url, runs, name=runs.__name__) as engine:
            failed = await outcome_of(engine, call(), CallContext(user_id="u", message_id=runs.__name__))
            assert isinstance(failed, Failed)
            assert (failed.kind, failed.exception_type) == ("exception", "TimeoutError")


async def test_a_tool_may_use_cancel_scopes_of_its_own(sqlite_url: str) -> None:
    async def tries() -> str:
        with anyio.move_on_after(0):
            await anyio.sleep_forever()
        with anyio.CancelScope() as scope:
            scope.cancel()
            await checkpoint()
        return "done"

    async def breaks() -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            raise ValueError("inside")

    async with staged(sqlite_url, tries) as engine:
        assert isinstance(await outcome_of(engine, call()), Executed)
    async with staged(sqlite_url, breaks) as engine:
        failed = await failed_of(engine, call_id="c2")
        assert (failed.kind, failed.exception_type) == ("exception", "ValueError")


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


async def test_case_execute_07_sync_tools_with_a_time_limit(sqlite_url: str) -> None:
    """Sixty hung threads: each call ends in time, the loop runs on, other calls are not held up, nothing comes late."""
    release = threading.Event()
    seen: list[str] = []
    finished: list[int] = []

    def hang() -> str:
        seen.append(caller_says.get())
        release.wait(30)
        finished.append(1)
        return "late"

    def quick() -> str:
        return caller_says.get()

    gaps: list[float] = []

    async def heartbeat() -> None:
        last = anyio.current_time()
        while True:
            await anyio.sleep(0.02)
            now = anyio.current_time()
            gaps.append(now - last)
            last = now

    ended: list[StreamEvent] = []

    async def one(engine: Engine, number: int) -> None:
        caller_says.set(f"caller {number}")
        ended.append(await outcome_of(engine, call(name="hang", call_id=f"c{number}")))

    tools = [tool_of(hang, name="hang", action="hang", timeout=0.5), tool_of(quick, name="quick", action="quick")]
    async with staged_engine(sqlite_url, *tools) as engine:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(heartbeat)
            async with anyio.create_task_group() as calls:
                for number in range(60):
                    calls.start_soon(one, engine, number)
            caller_says.set("another caller")
            other = await outcome_of(engine, call(name="quick", call_id="other"))
            tasks.cancel_scope.cancel()
        assert isinstance(other, Executed)
        assert other.result == "another caller"
        assert len(ended) == 60
        for event in ended:
            assert isinstance(event, Failed)
            assert event.kind == "timeout"
            assert "may still complete" in event.message
        assert sorted(seen) == sorted(f"caller {number}" for number in range(60))
        assert max(gaps) < 1
        head = await engine.log.head()
        release.set()
        while len(finished) < 60:
            await checkpoint()
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


async def test_iterators_are_the_tools_work(journal_url: str) -> None:
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
    async with staged_engine(journal_url, *tools) as engine:
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


async def test_case_execute_03_a_tool_cancels_itself(sqlite_url: str) -> None:
    """Nobody cancelled the run: it is the tool's failure, its sibling and its caller go on."""

    async def probe() -> None:
        raise asyncio.CancelledError("probe")

    async def other() -> int:
        await checkpoint()
        return 5

    tools = [tool_of(probe, name="probe", action="probe"), tool_of(other, name="other", action="other")]
    ended: dict[str, list[StreamEvent]] = {}

    async def one(engine: Engine, name: str) -> None:
        ended[name] = await events_of(engine, call(name=name, call_id=name))

    async with staged_engine(sqlite_url, *tools) as engine:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                for name in ("probe", "other"):
                    tasks.start_soon(one, engine, name)
        failed, executed = ended["probe"][1], ended["other"][1]
        assert isinstance(failed, Failed)
        assert (failed.kind, failed.exception_type) == ("exception", "CancelledError")
        assert isinstance(executed, Executed)
        assert executed.result == 5
        await proved(engine)


async def test_case_execute_03_an_outer_cancellation_always_goes_on(sqlite_url: str) -> None:
    running = anyio.Event()

    async def probe() -> None:
        running.set()
        await anyio.sleep_forever()

    async with staged(sqlite_url, probe) as engine:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(events_of, engine, call()))
                await running.wait()
                scope.cancel()
        assert scope.cancelled_caught
        failed = (await stream_of(engine))[1]
        assert isinstance(failed, Failed)
        assert failed.kind == "cancelled"


class Halt(BaseException):
    """No Exception."""


async def test_case_execute_04_exceptions_that_are_no_exception(journal_url: str) -> None:
    async def halts() -> None:
        raise Halt("now")

    async def exits() -> None:
        sys.exit(3)

    def exits_in_a_thread() -> None:
        sys.exit(3)

    async def fine() -> str:
        await checkpoint()
        return "ok"

    async def leaves() -> None:
        raise GeneratorExit

    runners = (halts, exits, exits_in_a_thread, fine, leaves)
    tools = [tool_of(runs, name=runs.__name__, action=runs.__name__) for runs in runners]
    ended: dict[str, StreamEvent] = {}

    async def one(engine: Engine, name: str) -> None:
        ended[name] = await outcome_of(engine, call(name=name, call_id=name))

    async with staged_engine(journal_url, *tools) as engine:
        async with anyio.create_task_group() as tasks:
            for runs in runners:
                tasks.start_soon(one, engine, runs.__name__)
        kinds = {name: event.exception_type for name, event in ended.items() if isinstance(event, Failed)}
        assert kinds == {
            "halts": "Halt",
            "exits": "SystemExit",
            "exits_in_a_thread": "SystemExit",
            "leaves": "GeneratorExit",
        }
        assert isinstance(ended["fine"], Executed)
        # The engine serves on.
        assert isinstance(await outcome_of(engine, call(name="fine", call_id="again")), Executed)
        await proved(engine)


async def test_base_exceptions_are_raised_again_on_request_too(sqlite_url: str) -> None:
    async def halts() -> None:
        raise Halt("now")

    async with staged(sqlite_url, halts) as engine:
        with pytest.raises(Halt, match="now"):
            await events_of(engine, call(), reraise=True)
        assert [type(event) for event in await stream_of(engine)] == [Proposed, Failed]


def test_keyboard_interrupt_is_honoured(sqlite_url: str, anyio_backend_name: str) -> None:
    """It leaves the loop, and the call is closed."""

    async def interrupted() -> None:
        raise KeyboardInterrupt

    async def agent() -> None:
        async with staged(sqlite_url, interrupted) as engine:
            await events_of(engine, call())

    async def afterwards() -> None:
        async with staged(sqlite_url, interrupted) as engine:
            assert (await row_of(engine)).status == "failed"
            await proved(engine)

    with pytest.raises(BaseException) as caught:  # noqa: PT011
        anyio.run(agent, backend=anyio_backend_name)
    assert caught.type is KeyboardInterrupt
    anyio.run(afterwards, backend=anyio_backend_name)


async def test_case_execute_05_exception_groups_say_what_is_in_them(sqlite_url: str) -> None:
    async def grouped() -> None:
        raise ExceptionGroup("unhandled errors in a TaskGroup (1 sub-exception)", [ConnectionRefusedError("dock 4")])

    async def mixed() -> None:
        raise BaseExceptionGroup("both", [asyncio.CancelledError(), ExceptionGroup("inner", [ValueError("bay 2")])])

    tools = [tool_of(runs, name=runs.__name__, action=runs.__name__) for runs in (grouped, mixed)]
    async with staged_engine(sqlite_url, *tools) as engine:
        failed = await failed_of(engine, name="grouped")
        assert "ConnectionRefusedError: dock 4" in failed.message
        assert "unhandled errors" not in failed.message
        assert failed.exception_type == "ExceptionGroup"
        other = await failed_of(engine, name="mixed", call_id="c2")
        assert "ValueError: bay 2" in other.message
        await proved(engine)


async def test_an_exceptions_text_is_fit_for_the_journal(journal_url: str) -> None:
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    errors: list[Exception] = [
        ValueError("nul \x00 half \ud800 end"),
        ValueError("x" * 1_000_000),
        Broken(),
        ValueError(),
        KeyError("k"),
    ]

    async def raises() -> None:
        raise errors[0]

    async with staged(journal_url, raises) as engine:
        told = []
        for number in range(5):
            failed = await failed_of(engine, call_id=f"c{number}")
            assert (await row_of(engine, f"m:c{number}")).error == failed.message
            told.append(failed.message)
            del errors[0]
        assert told[0] == "ValueError: nul  half \N{REPLACEMENT CHARACTER} end"
        assert len(told[1]) < 11_000
        assert told[2:] == ["Broken", "ValueError", "KeyError: 'k'"]
        await proved(engine)


async def test_consumers_that_are_slow_cost_the_tool_no_time(sqlite_url: str) -> None:
    """The deadline is the tool's: what its consumer does between the events does not count."""

    async def quick() -> str:
        return "quick"

    async with (
        staged(sqlite_url, quick, timeout=0.2) as engine,
        aclosing(engine.execute(call(), CONTEXT)) as stream,
    ):
        await anext(stream)
        time.sleep(0.3)
        assert isinstance(await anext(stream), Executed)
