"""Group commit: every append that waits at one moment goes into one transaction (DESIGN 4, Appending and reading).

There is no writer task. The first appender to find nobody writing leads: it commits its own append and all that wait,
then hands the lead to the next in the queue. An idle log therefore commits at once, and nothing is left behind when a
caller is cancelled: leading and waiting are shielded, and both end with the commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import anyio
import anyio.lowlevel
import msgspec

from events.errors import JournalError, LogUnavailable, Refused
from events.persistence import run_to_end, wait_to_end
from events.store import Outcome, Refusal, Store, Unit, Verdict

__all__ = ("Writer", "WriterStatistics")

_LARGEST_BATCH = 512


class WriterStatistics(msgspec.Struct, frozen=True):
    """What the writer has done: batches, appends, the largest batch, and how many wait now."""

    batches: int
    appends: int
    largest_batch: int
    waiting: int


class _Waiting:
    """One unit in the queue, and the appender that waits for it."""

    __slots__ = ("error", "leads", "unit", "verdict", "woken")

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.woken = anyio.Event()
        self.leads = False
        self.verdict: Verdict | None = None
        self.error: BaseException | None = None


class Writer:
    """Turns concurrent appends into batches for one store.

    :param limit: units that may wait; beyond it producers wait before they enter the queue, and nothing is dropped
    :param observe: called after each batch with (units in it, seconds it took, refusals)
    """

    def __init__(
        self, store: Store, limit: int = 1024, observe: Callable[[int, float, int], None] | None = None
    ) -> None:
        self._store = store
        self._limit = limit
        self._observe = observe
        self._queue: deque[_Waiting] = deque()
        self._led = False
        self._room = anyio.Event()
        self._batches = 0
        self._appends = 0
        self._largest = 0

    def __repr__(self) -> str:
        return f"<Writer {len(self._queue)} waiting, {self._batches} batches>"

    def statistics(self) -> WriterStatistics:
        """Return a snapshot."""
        return WriterStatistics(self._batches, self._appends, self._largest, len(self._queue))

    async def submit(self, unit: Unit) -> Verdict:
        """Commit one unit together with whatever else waits; durable on return.

        Cancelled before it entered the queue, nothing is written; later, the commit finishes first.

        :raises LogUnavailable: if the batch, or this unit of it, could not be written
        :raises Refused: if the database cannot store what the unit holds
        """
        await anyio.lowlevel.checkpoint_if_cancelled()
        while len(self._queue) >= self._limit:
            await self._room.wait()
        waiting = _Waiting(unit)
        self._queue.append(waiting)
        interruption = None
        if self._led:
            interruption = await wait_to_end(waiting.woken)
        else:
            self._led = waiting.leads = True
        if waiting.leads:
            await run_to_end(self._lead)
        if interruption is not None:
            raise interruption
        if isinstance(waiting.error, Refused):
            raise waiting.error
        if waiting.error is not None:
            raise LogUnavailable(str(waiting.error)) from waiting.error
        assert waiting.verdict is not None
        return waiting.verdict

    async def _lead(self) -> None:
        batch = self._cut()
        try:
            await self._commit(batch)
        finally:
            for waiting in batch:
                waiting.woken.set()
            if self._queue:
                successor = self._queue[0]
                successor.leads = True
                successor.woken.set()
            else:
                self._led = False

    def _cut(self) -> list[_Waiting]:
        """Take what goes into one transaction: no stream twice, and a unit of several streams alone."""
        batch: list[_Waiting] = []
        streams: set[tuple[str, str]] = set()
        while self._queue and len(batch) < _LARGEST_BATCH:
            unit = self._queue[0].unit
            names = {(append.tenant, append.key) for append in unit}
            if (len(unit) > 1 and batch) or not streams.isdisjoint(names):
                break
            batch.append(self._queue.popleft())
            if len(unit) > 1:
                break
            streams |= names
        room, self._room = self._room, anyio.Event()
        room.set()
        return batch

    async def _commit(self, batch: list[_Waiting]) -> None:
        started = anyio.current_time()
        try:
            outcomes = await self._store.commit([waiting.unit for waiting in batch])
        except BaseException as error:
            for waiting in batch:
                waiting.error = error
            if not isinstance(error, LogUnavailable):
                raise
            return
        for waiting, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, JournalError):
                waiting.error = outcome
            else:
                waiting.verdict = outcome
        self._count(batch, outcomes, anyio.current_time() - started)

    def _count(self, batch: list[_Waiting], outcomes: Sequence[Outcome], seconds: float) -> None:
        self._batches += 1
        self._appends += len(batch)
        self._largest = max(self._largest, len(batch))
        if self._observe is not None:
            refused = sum(map(_is_refused, outcomes))
            self._observe(len(batch), seconds, refused)


def _is_refused(outcome: Outcome) -> bool:
    return isinstance(outcome, JournalError) or any(isinstance(entry, Refusal) for entry in outcome)
