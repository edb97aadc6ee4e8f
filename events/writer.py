"""Group commit: every append that waits at one moment goes into one transaction (DESIGN 4, Appending and reading).

There is no writer task. The first appender to find nobody writing leads: it commits its own append, then hands the lead
to the first of those that came meanwhile. An idle log therefore commits at once, and nothing is left behind when a
caller is cancelled: leading and waiting are shielded, and both end with the commit.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

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


class _Batch:
    """Units that go into one transaction: no stream twice, and a unit of several streams alone.

    Whoever opened it leads it, at its turn. Once it is done, each unit has an outcome, or there is an error.
    """

    __slots__ = ("done", "error", "outcomes", "streams", "turn", "units")

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.streams: set[tuple[str, str]] = set()
        # Made by whoever waits: alone, an append waits for nobody.
        self.turn: anyio.Event | None = None
        self.done: anyio.Event | None = None
        self.outcomes: Sequence[Outcome] = ()
        self.error: BaseException | None = None

    def takes(self, unit: Unit) -> bool:
        """Take a unit in, if it fits."""
        if self.units and (len(unit) > 1 or len(self.units[0]) > 1 or len(self.units) == _LARGEST_BATCH):
            return False
        # The streams of a larger unit are distinct, and it stays alone: nothing to remember.
        if len(unit) == 1:
            name = (unit[0].tenant, unit[0].key)
            if name in self.streams:
                return False
            self.streams.add(name)
        self.units.append(unit)
        return True

    async def wait(self) -> BaseException | None:
        """Wait until the batch is done; a cancellation meanwhile is returned, to be raised."""
        if self.done is None:
            self.done = anyio.Event()
        return await wait_to_end(self.done)

    def verdict(self, place: int) -> Verdict:
        """Return how the unit at ``place`` fared, or raise why it could not be written."""
        error = self.error
        if error is None:
            outcome = self.outcomes[place]
            if not isinstance(outcome, JournalError):
                return outcome
            error = outcome
        if isinstance(error, Refused):
            raise error
        raise LogUnavailable(str(error)) from error


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
        self._queue: deque[_Batch] = deque()
        self._waiting = 0
        self._led = False
        self._crowded = False
        self._room: anyio.Event | None = None
        self._batches = 0
        self._appends = 0
        self._largest = 0

    def __repr__(self) -> str:
        return f"<Writer {self._waiting} waiting, {self._batches} batches>"

    def statistics(self) -> WriterStatistics:
        """Return a snapshot."""
        return WriterStatistics(self._batches, self._appends, self._largest, self._waiting)

    async def submit(self, unit: Unit) -> Verdict:
        """Commit one unit together with whatever else waits; durable on return.

        Cancelled before it entered the queue, nothing is written; later, the commit finishes first.

        :raises LogUnavailable: if the batch, or this unit of it, could not be written
        :raises Refused: if the database cannot store what the unit holds
        """
        await anyio.lowlevel.checkpoint_if_cancelled()
        while self._waiting >= self._limit:
            if self._room is None:
                self._room = anyio.Event()
            await self._room.wait()
        batch = self._enter(unit)
        place = len(batch.units) - 1
        interruption = await (batch.wait() if place else self._lead(batch))
        if interruption is not None:
            raise interruption
        return batch.verdict(place)

    def _enter(self, unit: Unit) -> _Batch:
        self._waiting += 1
        if self._queue and self._queue[-1].takes(unit):
            return self._queue[-1]
        batch = _Batch()
        batch.takes(unit)
        self._queue.append(batch)
        return batch

    async def _lead(self, batch: _Batch) -> BaseException | None:
        interruption = None
        if self._led:
            batch.turn = anyio.Event()
            interruption = await wait_to_end(batch.turn)
        self._led = True
        try:
            await run_to_end(partial(self._commit, batch))
        finally:
            if batch.done is not None:
                batch.done.set()
            self._crowded = bool(self._queue) or len(batch.units) > 1
            self._led = self._hand_over()
        return interruption

    def _hand_over(self) -> bool:
        """Give the lead to who waits for it; False: nobody does."""
        turn = self._queue[0].turn if self._queue else None
        if turn is None:
            return False
        turn.set()
        return True

    async def _cut(self, batch: _Batch) -> None:
        if self._crowded:
            # Those whose batch has just ended may append again at once: let them in first.
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
        self._queue.popleft()
        self._waiting -= len(batch.units)
        if self._room is not None:
            self._room.set()
            self._room = None

    async def _commit(self, batch: _Batch) -> None:
        await self._cut(batch)
        started = time.perf_counter()
        try:
            batch.outcomes = await self._store.commit(batch.units)
        except BaseException as error:
            batch.error = error
            if not isinstance(error, LogUnavailable):
                raise
            return
        self.count(len(batch.units), time.perf_counter() - started, sum(map(_is_refused, batch.outcomes)))

    def count(self, units: int, seconds: float, refused: int = 0) -> None:
        """Take one batch into the statistics, and tell the observer."""
        self._batches += 1
        self._appends += units
        self._largest = max(self._largest, units)
        if self._observe is not None:
            self._observe(units, seconds, refused)


def _is_refused(outcome: Outcome) -> bool:
    return isinstance(outcome, JournalError) or any(isinstance(entry, Refusal) for entry in outcome)
