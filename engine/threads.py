"""Worker threads for sync tools: one that hangs costs a place among them, and never keeps the process from ending.

AnyIO's own worker threads are not daemons on asyncio, so that the interpreter, when it ends, waits for each of them;
these are (on trio AnyIO's are too). Otherwise they are alike: context variables are the caller's, and
``anyio.from_thread`` finds the way back.
"""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import math
import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
from sniffio import current_async_library_cvar

from events.bridge import on_asyncio

__all__ = ("ThreadJob", "Threads")


class Threads:
    """Bounds the threads that sync tools run in; a thread that was left behind counts until it ends.

    :param limit: threads at once
    """

    def __init__(self, limit: int) -> None:
        self._places = anyio.CapacityLimiter(limit)
        # A job has its place before it asks AnyIO for a thread.
        self._any = anyio.CapacityLimiter(math.inf)

    def __repr__(self) -> str:
        return f"<Threads {self._places.borrowed_tokens} of {self._places.total_tokens} busy>"

    def job(self, action: Callable[[], Any], begins: Callable[[], None] | None = None) -> ThreadJob:
        """Return an action that is ready to be run in a thread, once; ``begins`` is called before, in the loop."""
        return ThreadJob(action, self._places, self._any, begins)


class ThreadJob:
    """One action in one thread. It cannot be stopped: who is cancelled while waiting leaves it behind.

    :ivar started: the action has been called
    :ivar ended: it has returned or raised, whether or not the one who waits knows already
    """

    def __init__(
        self,
        action: Callable[[], Any],
        places: anyio.CapacityLimiter,
        threads: anyio.CapacityLimiter,
        begins: Callable[[], None] | None,
    ) -> None:
        self._action = action
        self._places = places
        self._threads = threads
        self._begins = begins
        self._seen = anyio.Event()
        self._begun = threading.Lock()
        self._value: Any = None
        self._error: BaseException | None = None
        self.started = False
        self.ended = False

    def __repr__(self) -> str:
        return f"<ThreadJob {'ended' if self.ended else 'running' if self.started else 'waiting'}>"

    async def run(self) -> Any:
        """Run the action and return what it returns. Cancelled before it began, it never runs.

        :raises BaseException: whatever the action raises
        """
        await self._places.acquire_on_behalf_of(self)
        if self._begins is not None:
            self._begins()
        self.started = True
        token = anyio.lowlevel.current_token()
        if on_asyncio():
            self._start(token)
            await self._seen.wait()
        else:
            await self._run_abandonable(token)
        return self.outcome()

    async def _run_abandonable(self, token: Any) -> None:
        try:
            await anyio.to_thread.run_sync(self._work, token, abandon_on_cancel=True, limiter=self._threads)
        except BaseException:
            # Cancelled before there was a thread, or before it began: it never will, and its place is free.
            if self._begun.acquire(blocking=False):
                self.started = False
                self._report()
            raise

    def _start(self, token: Any) -> None:
        work = contextvars.copy_context().run
        try:
            threading.Thread(target=work, args=(self._work, token), name="calljournal tool", daemon=True).start()
        except BaseException:
            self._report()
            raise

    @property
    def awaitable(self) -> bool:
        """Whether what the action returned is still to be awaited."""
        return inspect.isawaitable(self._value)

    def outcome(self) -> Any:
        """Return what the action returned, once it has ended. :raises BaseException: whatever it raised"""
        if self._error is not None:
            raise self._error
        return self._value

    def _work(self, token: Any) -> None:
        if not self._begun.acquire(blocking=False):
            return
        # The copied context says that a loop runs here, and a tool may start one of its own.
        current_async_library_cvar.set(None)
        local: Any = getattr(anyio.from_thread, "threadlocals", None)
        if local is not None:
            local.current_token = token
        try:
            self._value = self._action()
        except BaseException as error:
            self._error = error
        self.ended = True
        # With the loop gone, nobody waits.
        with contextlib.suppress(RuntimeError):
            anyio.from_thread.run_sync(self._report, token=token)

    def _report(self) -> None:
        self._places.release_on_behalf_of(self)
        self._seen.set()
