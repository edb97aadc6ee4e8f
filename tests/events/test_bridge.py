"""The bridge to asyncio: the same calls from asyncio and from trio."""

from __future__ import annotations

import gc
import threading
from collections.abc import AsyncIterator
from contextvars import ContextVar

import anyio
import pytest

from events.bridge import Bridge, Departures, cancellation_requested, on_asyncio, open_bridge

pytestmark = pytest.mark.anyio

WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


@pytest.fixture
async def bridge() -> AsyncIterator[Bridge]:
    opened = await open_bridge()
    yield opened
    await opened.aclose()
    await opened.aclose()


class Hall:
    """Something asyncio-only: a place to wait in, and a record of who came through."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.left = ""

    async def wait(self) -> None:
        assert on_asyncio()
        event = anyio.Event()
        self.entered.set()
        try:
            await event.wait()
        finally:
            self.left = "early"

    async def stay(self, seconds: float) -> str:
        self.entered.set()
        await anyio.sleep(seconds)
        self.left = "in time"
        return self.left


async def test_a_call_runs_on_asyncio_with_the_callers_context(bridge: Bridge) -> None:
    async def ask() -> tuple[bool, str]:
        return on_asyncio(), WHO.get()

    WHO.set("alice")
    assert await bridge.call(ask) == (True, "alice")
    assert repr(bridge) == ("<Bridge direct>" if on_asyncio() else "<Bridge through a thread>")


async def test_what_it_raises_arrives(bridge: Bridge) -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    for how in (bridge.call, bridge.finish):
        with pytest.raises(ZeroDivisionError):
            await how(fail)


async def test_a_cancelled_call_is_cancelled_and_waited_for(bridge: Bridge) -> None:
    hall = Hall()
    with anyio.move_on_after(0.02):
        await bridge.call(hall.wait)
    assert hall.left == "early"


async def test_what_must_finish_finishes_though_it_is_cancelled(bridge: Bridge) -> None:
    hall = Hall()
    with anyio.move_on_after(0.01) as scope:
        assert await bridge.finish(hall.stay, 0.05) == "in time"
        await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert hall.left == "in time"


async def test_what_is_cancelled_before_it_began_does_not_begin(bridge: Bridge) -> None:
    hall = Hall()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await bridge.finish(hall.stay, 0)
    assert not hall.entered.is_set()


async def test_a_departed_callers_work_ends_by_itself(bridge: Bridge) -> None:
    async def make() -> Departures:
        return Departures()

    departures = await bridge.call(make)
    short, long = Hall(), Hall()

    async def run(hall: Hall, seconds: float) -> str:
        return await departures.run(hall.stay(seconds))

    assert await bridge.call(run, short, 0) == "in time"
    short.left = ""
    with anyio.move_on_after(0.01):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bridge.call, run, short, 0.05)
            tasks.start_soon(bridge.call, run, long, 3600)
    assert (short.left, long.left) == ("", "")
    await bridge.call(departures.aclose, 0.2)
    assert (short.left, long.left) == ("in time", "")


async def test_an_error_of_departed_work_is_reported_to_nobody(
    bridge: Bridge, caplog: pytest.LogCaptureFixture
) -> None:
    async def make() -> Departures:
        return Departures()

    departures = await bridge.call(make)

    async def fail() -> None:
        await anyio.sleep(0.05)
        raise ZeroDivisionError

    async def run() -> None:
        await departures.run(fail())

    with anyio.move_on_after(0.01) as left:
        await bridge.call(run)
    await bridge.call(departures.aclose, 5)
    # What nobody asked a task for is reported when the task is gone; on asyncio that ends the test.
    gc.collect()
    assert left.cancelled_caught
    assert "never retrieved" not in caplog.text


async def test_a_cancellation_from_outside_is_told_from_none() -> None:
    assert not cancellation_requested()
    with anyio.CancelScope() as scope:
        scope.cancel()
        assert cancellation_requested()
        with anyio.CancelScope(shield=True):
            assert not cancellation_requested()
    assert not cancellation_requested()
