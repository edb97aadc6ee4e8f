"""A tool that waits for nothing needs no timer; one that waits has its deadline as ever."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import anyio
import pytest

from engine.first_step import Rest, begin
from events import Executed, Failed
from tests.engine.staging import call, outcome_of, staged

__all__ = ()

pytestmark = pytest.mark.anyio


async def test_what_ends_at_once_has_ended() -> None:
    async def five() -> int:
        return 5

    assert begin(five()) == 5


async def test_what_is_raised_at_once_is_raised() -> None:
    async def broken() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        begin(broken())


async def test_the_rest_goes_on_where_the_first_step_ended() -> None:
    steps: list[str] = []

    async def walk() -> str:
        steps.append("first")
        await anyio.sleep(0)
        steps.append("second")
        with anyio.CancelScope() as inner:
            inner.cancel()
            await anyio.sleep_forever()
        await anyio.sleep(0)
        return "there"

    rest = begin(walk())
    assert isinstance(rest, Rest)
    assert steps == ["first"]
    assert await rest == "there"
    assert steps == ["first", "second"]


async def test_a_cancellation_reaches_the_rest() -> None:
    seen: list[type[BaseException]] = []

    async def walk() -> None:
        try:
            await anyio.sleep_forever()
        except BaseException as error:
            seen.append(type(error))
            raise

    with anyio.CancelScope() as scope:
        rest = begin(walk())
        scope.cancel()
        await rest
    assert seen == [anyio.get_cancelled_exc_class()]


async def test_what_is_awaitable_otherwise_is_all_rest() -> None:
    class Answer:
        def __await__(self) -> Generator[Any, Any, int]:
            return _seven().__await__()

    rest = begin(Answer())
    assert isinstance(rest, Rest)
    assert await rest == 7


async def _seven() -> int:
    await anyio.sleep(0)
    return 7


async def test_a_rest_that_is_left_ends_its_coroutine() -> None:
    ended: list[bool] = []

    async def walk() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(True)

    rest = begin(walk())
    rest.close()
    assert ended == [True]


async def test_a_tool_that_holds_up_its_loop_is_stopped_at_its_first_wait() -> None:
    async def stubborn() -> str:
        time.sleep(0.05)
        await anyio.sleep(30)
        return "late"

    async with staged("null://", stubborn, timeout=0.02) as engine:
        event = await outcome_of(engine, call({}))
    assert isinstance(event, Failed)
    assert event.kind == "timeout"


async def test_a_tool_that_never_waits_has_its_result_however_long_it_took() -> None:
    async def stubborn() -> str:
        time.sleep(0.05)
        return "late"

    async with staged("null://", stubborn, timeout=0.02) as engine:
        event = await outcome_of(engine, call({}))
    assert isinstance(event, Executed)
    assert event.result == "late"
