"""The last appends of calls: each is seen through whatever happens to who waits for it (DESIGN 6, Cancellation)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import anyio.abc

from events.persistence import run_to_end

__all__ = ("LastAppends",)

_log = logging.getLogger("calljournal.execution")


class LastAppends:
    """Runs last appends in the background of their engine.

    :param tasks: the engine's background
    :param patience: seconds after which a waiting caller goes on, and the append without it
    """

    def __init__(self, tasks: anyio.abc.TaskGroup, patience: float) -> None:
        self._tasks = tasks
        self._patience = patience
        self._open = True

    def __repr__(self) -> str:
        return f"<LastAppends {'open' if self._open else 'closed'}>"

    def close(self) -> None:
        """Begin nothing in the background any more: it is about to end."""
        self._open = False

    async def see_to(self, work: Callable[[], Coroutine[Any, Any, None]], what: str) -> None:
        """Run ``work`` to its end, shielded, and wait for that.

        A cancellation of the caller takes effect afterwards, or once the caller's patience is over: then the work goes
        on alone, and its failure is logged.

        :param what: names the work in the log
        :raises Exception: whatever the work raises meanwhile
        """
        if not self._open:
            await run_to_end(work)
            return
        done = anyio.Event()
        errors: list[Exception] = []
        alone = False

        async def shielded() -> None:
            with anyio.CancelScope(shield=True):
                try:
                    await work()
                except Exception as error:
                    errors.append(error)
                    if alone:
                        _log.warning("%s: %s", what, error)
                finally:
                    done.set()

        self._tasks.start_soon(shielded)
        try:
            await _wait(done, self._patience)
        finally:
            alone = not done.is_set()
        if errors:
            raise errors[0]
        if alone:
            _log.warning("%s: still being written after %g s", what, self._patience)


async def _wait(done: anyio.Event, seconds: float) -> None:
    """Wait for an event, at most so long, however often the caller is cancelled; that takes effect at the end."""
    interruption: BaseException | None = None
    with anyio.move_on_after(seconds, shield=True) as patience:
        while not done.is_set():
            try:
                await done.wait()
            except anyio.get_cancelled_exc_class() as cancelled:
                # A shield alone does not keep asyncio's own cancellation out.
                if patience.cancel_called:
                    raise
                interruption = cancelled
    if interruption is not None:
        raise interruption
