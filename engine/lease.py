"""The worker's lease: a row that says this engine is alive, renewed by a heartbeat (DESIGN 3, Worker)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
from sqlalchemy import ColumnElement, delete, func, insert, literal_column, select, update

from events.errors import JournalError
from events.schema import leases
from events.store import Store

__all__ = ("Lease", "database_time", "forget_leases", "lease_alive", "lease_end", "lease_runs")

_log = logging.getLogger("calljournal.lease")


class Lease:
    """One worker's lease on one store.

    :param seconds: how long the worker counts as alive after its last heartbeat
    :param clock: seconds that never run backwards
    """

    def __init__(self, store: Store, worker: str, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._seconds = seconds
        self._turn = anyio.Lock()
        # Since when the lease has been renewed without a gap, and when it was renewed last; None: there is a gap.
        self._since: float | None = None
        self._renewed = 0.0
        self.worker = worker
        self.clock = clock

    def __repr__(self) -> str:
        return f"<Lease {self.worker} {self._seconds:g}s>"

    async def begin(self) -> None:
        """Write the lease; before this, the worker appends nothing. :raises LogUnavailable: if it cannot be written"""
        async with self._turn:
            await self._begin()

    async def _begin(self) -> None:
        self._since = None
        expiry = _moment(self._store, self._seconds)
        row = {"worker": self.worker, "started_at": datetime.now(UTC), "expires_at": expiry}
        await self._store.write([insert(leases).values(row)])
        self._since = self._renewed = self.clock()

    async def renew(self) -> bool:
        """Prolong the lease; False if it is not there any more. :raises LogUnavailable: if it cannot be written"""
        async with self._turn:
            return await self._renew()

    async def _renew(self) -> bool:
        own = update(leases).where(leases.c.worker == self.worker)
        renewed = own.values(expires_at=_moment(self._store, self._seconds))
        try:
            in_time, there = await self._store.write([renewed.where(lease_runs(self._store)), renewed])
        except JournalError:
            self._since = None
            raise
        now = self.clock()
        # Half a period is more than one missed heartbeat: whoever else missed it may look dead.
        if not in_time or self._since is None or now - self._renewed > self._seconds / 2:
            self._since = now
        self._renewed = now
        return there == 1

    async def keep(self) -> None:
        """Prolong the lease, or write it anew where it is gone. :raises LogUnavailable: if it cannot be written"""
        async with self._turn:
            await self._keep()

    async def _keep(self) -> None:
        if not await self._renew():
            await self._begin()

    async def assured(self) -> float:
        """Renew the lease, and return for how many more seconds it must be held before anybody is declared dead by it.

        0: it has been renewed without a gap for one lease period, so that the database was there for every worker to
        renew its own. What was read of the leases since the renewal before this one can be relied on then.

        :raises LogUnavailable: if it cannot be written
        """
        async with self._turn:
            asked = self.clock()
            await self._keep()
            since = asked if self._since is None else self._since
        return min(self._seconds, max(0.0, since + self._seconds - asked))

    async def heartbeat(self) -> None:
        """Renew for ever, three times per lease; a database that is away is tried again ten times as often."""
        pause = self._seconds / 3
        while True:
            await anyio.sleep(pause)
            try:
                await self.keep()
                pause = self._seconds / 3
            except JournalError as error:
                pause = self._seconds / 30
                _log.warning("worker %s could not renew its lease: %s", self.worker, error)

    async def end(self) -> None:
        """Give the lease up: what this worker left running counts as abandoned at once."""
        try:
            await self._store.write([delete(leases).where(leases.c.worker == self.worker)])
        except JournalError as error:
            _log.warning("worker %s could not end its lease: %s", self.worker, error)


async def lease_alive(store: Store, worker: str) -> bool:
    """Return whether a worker's lease runs, by the database's clock where it has one."""
    return bool(await store.read(select(leases.c.worker).where(leases.c.worker == worker, lease_runs(store))))


async def lease_end(store: Store, worker: str) -> datetime | None:
    """Return when a worker's lease ends or ended; None: it was given up, or never was."""
    rows = await store.read(select(leases.c.expires_at).where(leases.c.worker == worker))
    return rows[0][0] if rows else None


async def forget_leases(store: Store, seconds: float) -> None:
    """Remove the leases that ended so many seconds ago: of workers that died, and left nothing any more."""
    await store.write([delete(leases).where(leases.c.expires_at < _moment(store, -seconds))])


async def database_time(store: Store) -> datetime:
    """Return the present moment by the clock that all workers share. :raises LogUnavailable: if it cannot be asked"""
    if store.dialect != "postgresql":
        return datetime.now(UTC)
    return (await store.read(select(func.clock_timestamp())))[0][0]  # type: ignore[no-any-return]


def lease_runs(store: Store) -> ColumnElement[bool]:
    """Return the condition that a row of the lease table is one of a worker that is alive."""
    return leases.c.expires_at > _moment(store, 0)


def _moment(store: Store, seconds: float) -> datetime | ColumnElement[Any]:
    # Workers on many machines share one clock only if it is the database's.
    if getattr(store, "dialect", "") == "postgresql":
        return func.clock_timestamp() + literal_column(f"interval '{float(seconds)} seconds'")
    return datetime.now(UTC) + timedelta(seconds=seconds)
