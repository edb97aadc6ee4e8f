"""Asyncio-only libraries for callers on any event loop: the one module that knows which loop is running (DESIGN 4).

On asyncio (uvloop too) a call is a plain await. On trio it hops to an asyncio loop in one thread of the bridge's own.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import ExitStack
from typing import Any, TypeVar, TypeVarTuple, Unpack

import anyio
import anyio.lowlevel
import anyio.to_thread
from anyio.from_thread import BlockingPortal, start_blocking_portal

__all__ = (
    "Background",
    "Bridge",
    "Departures",
    "NativeCancellations",
    "cancellation_requested",
    "on_asyncio",
    "open_bridge",
    "renew_cancellation",
    "to_the_end",
)

T = TypeVar("T")
Args = TypeVarTuple("Args")


class Bridge:
    """Runs coroutine functions on asyncio. Made by :func:`open_bridge`; used from the event loop that made it."""

    def __init__(self, portal: BlockingPortal | None, stack: ExitStack) -> None:
        self._portal = portal
        self._loop = None if portal is None else portal.call(asyncio.get_running_loop)
        self._stack = stack

    def __repr__(self) -> str:
        return f"<Bridge {'direct' if self._portal is None else 'through a thread'}>"

    async def call(self, function: Callable[[Unpack[Args]], Awaitable[T]], *args: *Args) -> T:
        """Await ``function(*args)`` on asyncio. Cancelled, it is cancelled too, and its clean-up is waited for."""
        if self._portal is None:
            return await function(*args)
        return await self._portal.call_async(function, *args)

    async def finish(self, function: Callable[[Unpack[Args]], Awaitable[T]], *args: *Args) -> T:
        """Await ``function(*args)`` on asyncio, shielded: for what must not be left half-way.

        A cancellation that was there before prevents the call; AnyIO's own takes effect after it. What asyncio's
        ``Task.cancel`` might reach is run by ``persistence.run_to_end``.
        """
        await anyio.lowlevel.checkpoint_if_cancelled()
        if self._loop is not None:
            return await _cross(self._loop, function, *args)
        with anyio.CancelScope(shield=True):
            return await function(*args)
        raise AssertionError("a shielded scope swallows nothing")

    async def aclose(self) -> None:
        """End the bridge's thread, if it has one; again: nothing."""
        if self._portal is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._stack.close)


async def _cross(loop: asyncio.AbstractEventLoop, function: Callable[[Unpack[Args]], Awaitable[T]], *args: *Args) -> T:
    """Await ``function(*args)`` on another thread's loop, from trio, whatever cancels the caller.

    A bare task and two wake-ups: the portal's way takes twice as long, and every append comes this way.
    """
    from sniffio import current_async_library_cvar
    from trio import lowlevel

    token, waiting = lowlevel.current_trio_token(), lowlevel.current_task()
    tasks: list[asyncio.Task[None]] = []
    results: list[T] = []

    async def run() -> None:
        # The caller's context came along, and with it the name of the caller's loop.
        current_async_library_cvar.set("asyncio")
        results.append(await function(*args))
        # At once: the task's callback comes a turn of the loop later.
        token.run_sync_soon(lowlevel.reschedule, waiting)

    def ended(_: asyncio.Task[None]) -> None:
        if not results:
            token.run_sync_soon(lowlevel.reschedule, waiting)

    def begin() -> None:
        task = loop.create_task(run())
        tasks.append(task)
        task.add_done_callback(ended)

    loop.call_soon_threadsafe(begin)
    await lowlevel.wait_task_rescheduled(lambda _: lowlevel.Abort.FAILED)
    if results:
        return results[0]
    if tasks[0].cancelled():
        raise RuntimeError("the bridge was closed while it was in use")
    tasks[0].result()
    raise AssertionError("a task without result has failed")


async def open_bridge() -> Bridge:
    """Return a bridge for the running event loop; close it with ``aclose``."""
    stack = ExitStack()
    if on_asyncio():
        return Bridge(None, stack)
    return Bridge(stack.enter_context(start_blocking_portal("asyncio", name="calljournal-asyncio")), stack)


def on_asyncio() -> bool:
    """Tell whether the event loop is asyncio's (uvloop's too)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Await the work in a task of its own; only on asyncio. Cancelled meanwhile, by asyncio or AnyIO, wait for its end,
    then raise that.

    :raises BaseException: what the work raises, where nobody cancelled
    """
    task = asyncio.ensure_future(work)
    delayed: asyncio.CancelledError | None = None
    try:
        await asyncio.wait((task,))
    except asyncio.CancelledError as cancelled:
        delayed = cancelled
        # AnyIO delivers its cancellation again and again: what is left is waited for behind a shield.
        with anyio.CancelScope(shield=True):
            while not task.done():
                try:
                    await asyncio.wait((task,))
                except asyncio.CancelledError as again:
                    delayed = again
    if delayed is None:
        return task.result()
    if not task.cancelled():
        task.exception()
    raise delayed


class Background:
    """One asyncio task that runs beside its starter; only for use on asyncio's side of a bridge."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self._task = asyncio.ensure_future(work)

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return not self._task.done()

    async def aclose(self) -> None:
        """Cancel the task and wait for its end; what it raised otherwise is raised here."""
        self._task.cancel()
        await asyncio.wait((self._task,))
        if not self._task.cancelled() and (error := self._task.exception()) is not None:
            raise error


class Departures:
    """Work whose callers may leave before it ends; only for use on asyncio's side of a bridge.

    What must not be broken off in the middle, for its connection would be lost with it, yet is not worth waiting for.
    """

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Await the work. Cancelled, return at once and leave the work to end by itself, its result unseen."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # Whoever left does not ask for it, and asyncio would report an error that nobody asked for.
            task.exception()

    async def aclose(self, patience: float) -> None:
        """Wait ``patience`` seconds for what is still under way, then cancel it."""
        if self._tasks:
            _, late = await asyncio.wait(tuple(self._tasks), timeout=patience)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)


def cancellation_requested() -> bool:
    """Tell whether the current task is being cancelled from outside, so that a CancelledError of a tool's own is told
    from a real one."""
    if on_asyncio():
        task = asyncio.current_task()
        if task is not None and task.cancelling() > 0:
            return True
    return anyio.current_effective_deadline() == -math.inf


class NativeCancellations:
    """Tells whether asyncio's ``Task.cancel`` is asked of the current task once it is watched; on trio it never is."""

    __slots__ = ("_task", "_told")

    def __init__(self) -> None:
        self._task: asyncio.Task[Any] | None = None
        self._told = 0

    def watch(self) -> None:
        """Begin: whatever was asked before does not count."""
        if on_asyncio():
            self._task = asyncio.current_task()
            self._told = 0 if self._task is None else self._task.cancelling()

    def came(self) -> bool:
        """Whether it was asked since, and not called off."""
        return self._task is not None and self._task.cancelling() > self._told


def renew_cancellation() -> None:
    """Ask asyncio's cancellation of the current task anew where somebody caught it: it arrives at the next await.

    AnyIO's own cancellation is left to AnyIO, which delivers it until its scope ends.
    """
    if anyio.current_effective_deadline() == -math.inf:
        return
    task = asyncio.current_task()
    if task is not None:
        # The number of requests stays what it was, for those who compare it.
        task.uncancel()
        task.cancel()
