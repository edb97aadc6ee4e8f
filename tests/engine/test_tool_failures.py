"""Whatever a tool raises ends its own call and nothing else (CASES EXECUTE-03, 04, 05)."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import Any

import anyio
import anyio.from_thread
import pytest
from anyio.lowlevel import checkpoint

from engine import CallContext, Engine
from events import Executed, Failed, Proposed
from events.types import StreamEvent
from tests.engine.staging import (
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

__all__ = ()

pytestmark = pytest.mark.anyio


async def failed_of(engine: Engine, **wanted: Any) -> Failed:
    event = await outcome_of(engine, call(**wanted))
    assert isinstance(event, Failed), event
    return event


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

    class Leaving(Exception):
        def __str__(self) -> str:
            raise SystemExit(3)

    errors: list[Exception] = [
        ValueError("nul \x00 half \ud800 end"),
        ValueError("x" * 1_000_000),
        Broken(),
        ValueError(),
        KeyError("k"),
        Leaving(),
    ]

    async def raises() -> None:
        raise errors[0]

    async with staged(journal_url, raises) as engine:
        told = []
        for number in range(6):
            failed = await failed_of(engine, call_id=f"c{number}")
            assert (await row_of(engine, f"m:c{number}")).error == failed.message
            told.append(failed.message)
            del errors[0]
        assert told[0] == "ValueError: nul  half \N{REPLACEMENT CHARACTER} end"
        assert len(told[1]) < 11_000
        assert told[2:] == ["Broken", "ValueError", "KeyError: 'k'", "Leaving"]
        await proved(engine)
