"""The thread in which one SQLite connection lives: one thing after another, each to its end."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

import anyio
import anyio.from_thread
import anyio.lowlevel

from events.persistence import wait_to_end

__all__ = ("Lane",)

T = TypeVar("T")


class _Job:
    __slots__ = ("done", "error", "result", "token", "work")

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.done = anyio.Event()
        self.token = anyio.lowlevel.current_token()
        self.result: Any = None
        self.error: BaseException | None = None


class Lane:
    """Runs functions in a thread of its own, in the order in which they were asked for.

    AnyIO's worker threads would not do: a plain ``task.cancel()`` frees their limiter while the function still runs,
    and the next one would find the connection in the middle of a transaction.

    :param name: of the thread
    """

    def __init__(self, name: str = "calljournal-sqlite") -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._closed = False
        # A daemon: a log that was never closed must not keep the interpreter from ending.
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"<Lane{' closed' if self._closed else ''}>"

    @property
    def closed(self) -> bool:
        """Whether it takes nothing any more."""
        return self._closed

    async def run(self, work: Callable[[], T]) -> T:
        """Run ``work`` and return its result. Once it has begun it is waited for; a cancellation is raised after that.

        :raises BaseException: whatever ``work`` raises
        """
        await anyio.lowlevel.checkpoint_if_cancelled()
        job = _Job(work)
        self._jobs.put(job)
        interruption = await wait_to_end(job.done)
        if interruption is not None:
            raise interruption
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def close(self) -> None:
        """Let the thread end after what it has been given."""
        self._closed = True
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job.result = job.work()
            except BaseException as error:
                job.error = error
            try:
                anyio.from_thread.run_sync(job.done.set, token=job.token)
            except anyio.RunFinishedError:
                # Nobody is left to hear of it.
                continue
