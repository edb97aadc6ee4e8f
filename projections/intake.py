"""How a read model is run: page by page, its rows and its checkpoint in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from events.keys import tenant_of
from events.log import EventLog
from events.records import Pager, Record, moment_of, records_after
from events.schema import checkpoints
from events.types import Recorded
from projections.projection import Projection, ProjectionStatistics
from projections.schema import parked

__all__ = ("Run", "forget")

_BATCH = 256
_BACKSTOP = 1.0


class _Step(msgspec.Struct, frozen=True):
    """What one record comes to: statements to run, or the reason why it is parked."""

    position: int
    statements: tuple[Any, ...] = ()
    error: str | None = None


class _MovedError(Exception):
    """Another run of this read model has moved its checkpoint."""


class _PoisonError(Exception):
    """The database refuses what a record comes to."""


class Run:
    """One run of a read model."""

    def __init__(
        self, log: EventLog, projection: Projection, observe: Callable[[ProjectionStatistics], None] | None
    ) -> None:
        self._log = log
        self._store = log.store
        self._projection = projection
        self._observe = observe
        self._done = ProjectionStatistics()

    async def run(self, *, follow: bool) -> ProjectionStatistics:
        """Take in what is there; ``follow``: and what comes, without end."""
        await self._find_checkpoint()
        while True:
            await self._catch_up(await self._log.head())
            if not follow:
                return self._done
            await self._store.wait(self._done.position, _BACKSTOP)

    async def _find_checkpoint(self) -> None:
        def find(connection: Connection) -> int:
            name = self._projection.name
            dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
            begin = dialect.insert(checkpoints).values(name=name, position=0, updated_at=datetime.now(UTC))
            connection.execute(begin.on_conflict_do_nothing())
            found = connection.execute(select(checkpoints.c.position).where(checkpoints.c.name == name))
            return int(found.scalar_one())

        self._done = msgspec.structs.replace(self._done, position=await self._store.transact(find))

    async def _catch_up(self, head: int) -> None:
        pager = Pager(_BATCH)
        while self._done.position < head:
            pager.size = min(pager.size, _BATCH)
            records = await records_after(self._store, self._done.position, head, pager)
            if not records:
                return
            steps = [self._step(record) for record in records]
            try:
                await self._take_all(steps)
            except _MovedError:
                await self._find_checkpoint()

    def _step(self, record: Record) -> _Step:
        position, _, version, tenant, key, _, kind, schema_version, recorded_at, data = record
        try:
            event = self._log.codec.decode(kind, schema_version, data, position)
            if event is None:
                return _Step(position)
            recorded = Recorded(
                position=position,
                key=key,
                version=version,
                recorded_at=moment_of(recorded_at),
                user_id=tenant_of(tenant),
                event=event,
            )
            return _Step(position, tuple(self._projection.statements(recorded)))
        except Exception as error:
            # Whatever a read model raises must not stop it for ever: the record is kept with the reason.
            return _Step(position, error=f"{type(error).__name__}: {error}".replace("\0", ""))

    async def _take_all(self, steps: Sequence[_Step]) -> None:
        try:
            await self._take(steps)
        except _PoisonError as error:
            if len(steps) == 1:
                await self._take([_Step(steps[0].position, error=str(error))])
                return
            for step in steps:
                await self._take_all([step])

    async def _take(self, steps: Sequence[_Step]) -> None:
        before, last = self._done.position, steps[-1].position

        def write(connection: Connection) -> None:
            moved = update(checkpoints).where(
                checkpoints.c.name == self._projection.name, checkpoints.c.position == before
            )
            if connection.execute(moved.values(position=last, updated_at=datetime.now(UTC))).rowcount != 1:
                raise _MovedError
            for step in steps:
                _apply(connection, self._projection.name, step)

        await self._store.transact(write)
        self._done = ProjectionStatistics(
            last,
            self._done.events + len(steps),
            self._done.parked + sum(step.error is not None for step in steps),
        )
        if self._observe is not None:
            self._observe(self._done)


def _apply(connection: Connection, name: str, step: _Step) -> None:
    if step.error is not None:
        values = {"projection": name, "position": step.position, "error": step.error, "parked_at": datetime.now(UTC)}
        connection.execute(insert(parked).values(values))
        return
    try:
        for statement in step.statements:
            connection.execute(statement)
    except (SQLAlchemyError, OverflowError, TypeError, ValueError) as error:
        if _is_outage(error):
            raise
        reason = str(getattr(error, "orig", None) or error).replace("\0", "")
        raise _PoisonError(f"{type(error).__name__}: {reason}") from error


def _is_outage(error: Exception) -> bool:
    """Whether the database failed, rather than the values it was given."""
    if not isinstance(error, DBAPIError):
        return False
    # SQLSTATE classes of Postgres: connection, rollback by conflict, resources, object in use, operator, system.
    state = str(getattr(error.orig, "sqlstate", None) or "")
    outage = state[:2] in {"08", "40", "53", "55", "57", "58"}
    return outage or error.connection_invalidated or (not state and isinstance(error, OperationalError))


def forget(name: str) -> list[Any]:
    """Return the statements that forget a read model's checkpoint and what it parked."""
    return [
        delete(checkpoints).where(checkpoints.c.name == name),
        delete(parked).where(parked.c.projection == name),
    ]
