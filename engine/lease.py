"""The worker's lease: a row that says this engine is alive, renewed by a heartbeat (DESIGN 3, Worker)."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
from sqlalchemy import ColumnElement, delete, func, insert, literal_column, select, update

from events.errors import JournalError
from events.schema import leases
from events.store import Store

__all__ = ("Lease", "lease_alive")

_log = logging.getLogger("calljournal.lease")


class Lease:
    """One worker's lease on one store.

    :param seconds: how long the worker counts as alive after its last heartbeat
    """

    def __init__(self, store: Store, worker: str, seconds: float) -> None:
        self._store = store
        self._seconds = seconds
        self.worker = worker

    def __repr__(self) -> str:
        return f"<Lease {self.worker} {self._seconds:g}s>"

    async def begin(self) -> None:
        """Write the lease; before this, the worker appends nothing. :raises LogUnavailable: if it cannot be written"""
        expiry = _moment(self._store, self._seconds)
        row = {"worker": self.worker, "started_at": datetime.now(UTC), "expires_at": expiry}
        await self._store.write([insert(leases).values(row)])

    async def renew(self) -> bool:
        """Prolong the lease; False if it is not there any more. :raises LogUnavailable: if it cannot be written"""
        expiry = _moment(self._store, self._seconds)
        statement = update(leases).where(leases.c.worker == self.worker).values(expires_at=expiry)
        return (await self._store.write([statement]))[0] == 1

    async def heartbeat(self) -> None:
        """Renew for ever, three times per lease; a database that is away is tried again."""
        while True:
            await anyio.sleep(self._seconds / 3)
            try:
                if not await self.renew():
                    await self.begin()
            except JournalError as error:
                _log.warning("worker %s could not renew its lease: %s", self.worker, error)

    async def end(self) -> None:
        """Give the lease up: what this worker left running counts as abandoned at once."""
        try:
            await self._store.write([delete(leases).where(leases.c.worker == self.worker)])
        except JournalError as error:
            _log.warning("worker %s could not end its lease: %s", self.worker, error)


async def lease_alive(store: Store, worker: str) -> bool:
    """Return whether a worker's lease runs, by the database's clock where it has one."""
    statement = select(leases.c.worker).where(leases.c.worker == worker, leases.c.expires_at > _moment(store, 0))
    return bool(await store.read(statement))


def _moment(store: Store, seconds: float) -> datetime | ColumnElement[Any]:
    # Workers on many machines share one clock only if it is the database's.
    if getattr(store, "dialect", "") == "postgresql":
        return func.clock_timestamp() + literal_column(f"interval '{float(seconds)} seconds'")
    return datetime.now(UTC) + timedelta(seconds=seconds)
