"""The last appends of calls that nobody waits for any more: seen to by the engine, whatever cancels the caller."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio
import anyio.abc

from events.errors import JournalError
from events.persistence import run_to_end

__all__ = ("Closings",)

_log = logging.getLogger("calljournal.closing")


class Closings:
    """Runs closing work in the engine's own tasks.

    :param tasks: the engine's background
    :param seconds: how long a caller waits for its work; after that the work goes on without it
    """

    def __init__(self, tasks: anyio.abc.TaskGroup, seconds: float) -> None:
        self._tasks = tasks
        self._seconds = seconds
        self._closed = False

    def __repr__(self) -> str:
        return f"<Closings{' closed' if self._closed else ''}>"

    def close(self) -> None:
        """From now on work runs in its caller's task: the engine's own are about to end."""
        self._closed = True

    async def see_to(self, work: Callable[[], Awaitable[None]], what: str) -> None:
        """Run ``work`` to its end and wait for it, at most the given time; a cancellation takes effect after that.

        :param what: names the work in a log line if it fails with nobody waiting
        :raises JournalError: what the work raised, where the caller still waits
        """
        if self._closed:
            await run_to_end(work)
            return
        done = anyio.Event()
        failures: list[JournalError] = []
        waited = True

        async def seen_to() -> None:
            with anyio.CancelScope(shield=True):
                try:
                    await work()
                except JournalError as error:
                    failures.append(error)
                finally:
                    done.set()
            if failures and not waited:
                _log.warning("%s: %s", what, failures[0])

        self._tasks.start_soon(seen_to)
        interruption = await self._patience(done)
        waited = done.is_set()
        if interruption is not None:
            raise interruption
        if failures:
            raise failures[0]

    async def _patience(self, done: anyio.Event) -> BaseException | None:
        """Wait while there is time; return a cancellation of the caller, for it to take effect afterwards."""
        interruption: BaseException | None = None
        with anyio.move_on_after(self._seconds, shield=True) as time:
            while not done.is_set():
                try:
                    await done.wait()
                except anyio.get_cancelled_exc_class() as cancelled:
                    if time.cancel_called:
                        raise
                    interruption = cancelled
        return interruption
