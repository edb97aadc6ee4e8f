"""The one connection over which a Postgres store commits, and what happens when it fails.

Runs on asyncio's side of the bridge. Every event has an id of its own, so a batch can be sent again after a lost
connection: what had been written is recognised.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import anyio
import asyncpg

from events.errors import JournalError, LogUnavailable
from events.postgres_append import AppendCall
from events.postgres_connection import Address, connect, is_lost, reason, translated
from events.store import Appended, InlineProjection, Outcome, Refusal, StreamAppend, Unit

__all__ = ("Committer",)

PATIENCE = 5.0
"""Seconds for which a lost connection is replaced and the batch sent again."""

_ANSWER_TIMEOUT = 30.0
_ISOLATION_TIME = 10.0
_LARGEST_STATEMENT = 32_000_000
"""Characters of events and payloads in one statement."""

_AGAIN = frozenset({"40001", "40P01", "CJ001"})
"""Serialisation failure, deadlock, and two units that began one stream at once."""

_Results: TypeAlias = list[Appended | Refusal | JournalError]


class _Failed(Exception):
    """The statement failed, with the connection intact; nothing was written."""

    def __init__(self, error: JournalError) -> None:
        super().__init__(str(error))
        self.error = error


class Committer:
    """Sends batches to the append function, one at a time.

    :ivar epoch: the epoch as the newest batch saw it
    """

    def __init__(self, address: Address, projection: InlineProjection, epoch: str | None = None) -> None:
        self.epoch = 0
        self._address = address
        self._append = AppendCall(projection, epoch)
        self._connection: asyncpg.Connection | None = None
        self._lock = anyio.Lock(fast_acquire=True)
        self._away = False

    def __repr__(self) -> str:
        connected = self._connection is not None and not self._connection.is_closed()
        return f"<Committer {'connected' if connected else 'not connected'}>"

    async def commit(self, units: Sequence[Unit]) -> list[Outcome]:
        """Write the units; each has its own outcome. Single appends share a transaction (several, where they
        are very long), larger units have their own.

        :raises LogUnavailable: if the database cannot be reached, or it is not known what it did
        """
        async with self._lock:
            deadline = anyio.current_time() + _ISOLATION_TIME
            singles: _Results = []
            for part in _parts([unit[0] for unit in units if len(unit) == 1]):
                singles += await self._batch(part, deadline)
            results = iter(singles)
            return [_outcome([next(results)]) if len(unit) == 1 else await self._unit(unit) for unit in units]

    async def _unit(self, unit: Unit) -> Outcome:
        try:
            return tuple(await self._call(unit, together=True))
        except _Failed as failed:
            return failed.error

    async def _batch(self, appends: Sequence[StreamAppend], deadline: float) -> _Results:
        """Write the appends in one transaction; if one spoils it, in two halves, until it stands alone."""
        try:
            return [*await self._call(appends, together=False)]
        except _Failed as failed:
            if len(appends) == 1:
                return [failed.error]
            if anyio.current_time() > deadline:
                # One of them is at fault, and there was no time to find out which.
                blameless = LogUnavailable(f"{self._address.place}: an append beside this one failed; try again")
                return [blameless] * len(appends)
        half = len(appends) // 2
        return await self._batch(appends[:half], deadline) + await self._batch(appends[half:], deadline)

    async def _call(self, appends: Sequence[StreamAppend], *, together: bool) -> list[Appended | Refusal]:
        arguments = self._append.arguments(appends, together)
        # Once patience was in vain, each batch finds out at once whether the database is back.
        deadline = anyio.current_time() + (0.0 if self._away else PATIENCE)
        pause = 0.01
        while True:
            try:
                record = await self._run(arguments)
                self._away = False
                self.epoch = self._append.epoch(record)
                return self._append.verdicts(appends, record)
            except Exception as error:
                lost = self._worth_another(error)
                if not lost or anyio.current_time() + pause > deadline:
                    self._away = lost
                    described = self._described(error)
                    if described is error:
                        raise
                    raise described from error
            await anyio.sleep(pause)
            pause = min(pause * 2, 0.5)

    async def _run(self, arguments: list[Any]) -> Any:
        connection = await self.connection()
        if not self._address.pooled:
            return await connection.fetchrow(self._append.statement, *arguments, timeout=_ANSWER_TIMEOUT)
        async with connection.transaction(isolation="read_committed"):
            return await connection.fetchrow(self._append.statement, *arguments, timeout=_ANSWER_TIMEOUT)

    def _worth_another(self, error: Exception) -> bool:
        if isinstance(error, LogUnavailable):
            return error.__cause__ is not None and is_lost(error.__cause__)
        if is_lost(error):
            self._drop()
            return True
        return getattr(error, "sqlstate", None) in _AGAIN

    def _described(self, error: Exception) -> Exception:
        if isinstance(error, LogUnavailable):
            return error
        if is_lost(error) or isinstance(error, TimeoutError):
            self._drop()
            return LogUnavailable(f"{self._address.place}: {reason(error)}")
        if isinstance(error, asyncpg.PostgresError | ValueError):
            return _Failed(translated(self._address, error))
        return error

    async def connection(self) -> asyncpg.Connection:
        """Return the connection, a new one where it is gone.

        :raises LogUnavailable: if the database cannot be reached
        """
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self._address)
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def aclose(self) -> None:
        """Close the connection."""
        async with self._lock:
            self._drop()


def _parts(appends: Sequence[StreamAppend]) -> Iterator[Sequence[StreamAppend]]:
    """Cut a batch of very long results, so that no single statement grows beyond what a server takes."""
    first, size = 0, 0
    for number, append in enumerate(appends):
        length = sum(len(event.data) for event in append.events) + sum(len(long.content) for long in append.payloads)
        if size and size + length > _LARGEST_STATEMENT:
            yield appends[first:number]
            first, size = number, 0
        size += length
    if appends:
        yield appends[first:]


def _outcome(results: _Results) -> Outcome:
    result = results[0]
    return result if isinstance(result, JournalError) else (result,)
