"""Where calls may be stuck: pages of ``tool_call_attempts``, each read through an index and no larger than one page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace
from sqlalchemy import BigInteger, ColumnElement, Select, and_, func, literal, literal_column, or_, select, tuple_

from engine.lease import lease_runs
from events.codec import Codec
from events.errors import LogUnavailable
from events.keys import tenant_of
from events.schema import Utc, events, leases
from events.store import Store
from events.transitions import Attempt, Gate, Status
from events.types import Paused, PauseType
from projections.schema import attempts

__all__ = (
    "APPROVED_PAGE",
    "PAGE",
    "Suspect",
    "abandoned",
    "approved",
    "oldest_unconfirmed",
    "overdue",
    "waiting_for_approval",
)

PAGE: Final = 256
"""Rows of one page."""

APPROVED_PAGE: Final = 64
"""Likewise of approved calls, which come with their pause and its arguments."""

_COLUMNS: Final = (
    attempts.c.stream,
    attempts.c.tenant,
    attempts.c.key,
    attempts.c.tool_name,
    attempts.c.action_name,
    attempts.c.status,
    attempts.c.gate,
    attempts.c.pause_type,
    attempts.c.expires_at,
    attempts.c.worker,
    attempts.c.idempotent,
    attempts.c.late,
    attempts.c.updated_at,
    attempts.c.version,
)
_OPEN: Final = attempts.c.status == literal_column("'proposed'")
_EXECUTED: Final = attempts.c.status == literal_column("'executed'")
"""As literals: a parameter is never planned through a partial index."""

_ORDER: Final = (attempts.c.gate, attempts.c.pause_type, attempts.c.expires_at, attempts.c.stream)


class Suspect(msgspec.Struct, frozen=True, gc=False):
    """The part of a row that tells whether its call is stuck.

    :ivar expires_at: until when it waits; of an approved call, until when it may run
    :ivar lease_end: when its worker's lease ended, if that was not given up
    """

    stream: int
    user_id: str | None
    key: str
    tool_name: str
    action_name: str
    status: Status
    gate: Gate
    pause_type: PauseType | None
    expires_at: datetime | None
    worker: str
    idempotent: bool
    late: bool
    updated_at: datetime
    version: int
    lease_end: datetime | None = None

    @property
    def attempt(self) -> Attempt:
        """The part that the lifecycle speaks of."""
        return Attempt(
            status=self.status,
            gate=self.gate,
            pause_type=self.pause_type,
            late=self.late,
            idempotent=self.idempotent,
            version=self.version,
        )


async def abandoned(store: Store, gate: Gate, worker: str, after: Suspect | None) -> list[Suspect]:
    """Return calls that are open or claimed and whose worker's lease does not run, in order of their stream.

    :param worker: who asks; its own calls are none of them
    :param after: the last of the page before
    :raises LogUnavailable: if the database cannot be read
    """
    return _suspects(await _rows(store, _abandoned(store, gate, worker, _stream(after))))


def _abandoned(store: Store, gate: Gate, worker: str, after: int) -> Select[Any]:
    gone = or_(leases.c.worker.is_(None), ~lease_runs(store))
    return (
        select(*_COLUMNS, leases.c.expires_at)
        .join_from(attempts, leases, leases.c.worker == attempts.c.worker, isouter=True)
        .where(*_in_gate(gate), attempts.c.stream > after, attempts.c.worker != worker, gone)
        .order_by(*_ORDER)
        .limit(PAGE)
    )


async def overdue(store: Store, pause_type: PauseType, now: datetime, after: Suspect | None) -> list[Suspect]:
    """Return calls that wait past their deadline, the longest overdue first.

    :raises LogUnavailable: if the database cannot be read
    """
    return _suspects(await _rows(store, _overdue(pause_type, now, after)))


def _overdue(pause_type: PauseType, now: datetime, after: Suspect | None) -> Select[Any]:
    paused = (_OPEN, attempts.c.gate == "paused", attempts.c.pause_type == pause_type)
    beyond: Sequence[ColumnElement[bool]] = ()
    if after is not None:
        # Compared as a pair: Postgres would put an OR together from two looks into the index, and sort.
        place = tuple_(literal(after.expires_at, Utc), literal(after.stream, BigInteger))
        beyond = (tuple_(attempts.c.expires_at, attempts.c.stream) > place,)
    statement = select(*_COLUMNS).where(*paused, attempts.c.expires_at <= now, *beyond)
    return statement.order_by(*_ORDER).limit(PAGE)


async def approved(store: Store, codec: Codec, after: Suspect | None) -> list[Suspect]:
    """Return calls that were approved and have not been run, in order of their stream.

    :raises LogUnavailable: if the database cannot be read, or a pause's text is damaged
    """
    rows = await _rows(store, _approved(_stream(after)))
    suspects = []
    for *columns, schema_version, data in rows:
        (suspect,) = _suspects([columns])
        # An approval leaves the row without a deadline; that of the pause before it still holds.
        suspects.append(replace(suspect, expires_at=_deadline(codec, schema_version, data)))
    return suspects


def _deadline(codec: Codec, schema_version: int, data: str | None) -> datetime | None:
    try:
        pause = None if data is None else codec.decode("paused", schema_version, data, 0)
    except msgspec.DecodeError:
        # A damaged event is what verify is for; here its call has no deadline that could be told.
        return None
    return pause.expires_at if isinstance(pause, Paused) else None


def _approved(after: int) -> Select[Any]:
    earlier = events.alias()
    last = (
        select(func.max(earlier.c.version))
        .where(earlier.c.stream == attempts.c.stream, earlier.c.type == "paused")
        .scalar_subquery()
    )
    pause = and_(events.c.stream == attempts.c.stream, events.c.version == last)
    return (
        select(*_COLUMNS, events.c.schema_version, events.c.data)
        .join_from(attempts, events, pause, isouter=True)
        .where(*_in_gate("approved"), attempts.c.stream > after)
        .order_by(*_ORDER)
        .limit(APPROVED_PAGE)
    )


async def oldest_unconfirmed(store: Store, before: datetime, most: int) -> tuple[int, list[Suspect]]:
    """Return how many calls were executed before a moment and never confirmed, and the oldest of them.

    :raises LogUnavailable: if the database cannot be read
    """
    counted, oldest = _unconfirmed(before, most)
    count = int((await _rows(store, counted))[0][0])
    return count, _suspects(await _rows(store, oldest)) if count else []


def _unconfirmed(before: datetime, most: int) -> tuple[Select[Any], Select[Any]]:
    old = (_EXECUTED, attempts.c.updated_at <= before)
    counted = select(func.count()).select_from(attempts).where(*old)
    return counted, select(*_COLUMNS).where(*old).order_by(attempts.c.updated_at).limit(most)


async def waiting_for_approval(store: Store) -> int:
    """Return how many calls wait for a person. :raises LogUnavailable: if the database cannot be read"""
    return int((await _rows(store, _waiting()))[0][0])


def _waiting() -> Select[Any]:
    paused = (_OPEN, attempts.c.gate == "paused", attempts.c.pause_type == "awaiting_approval")
    return select(func.count()).select_from(attempts).where(*paused)


def _in_gate(gate: Gate) -> tuple[ColumnElement[bool], ...]:
    # Neither column is set in these gates; saying so makes the index one run in the order of the streams.
    return (_OPEN, attempts.c.gate == gate, attempts.c.pause_type.is_(None), attempts.c.expires_at.is_(None))


def _stream(suspect: Suspect | None) -> int:
    return 0 if suspect is None else suspect.stream


async def _rows(store: Store, statement: Select[Any]) -> Sequence[Sequence[Any]]:
    try:
        return await store.read(statement)
    except ValueError as error:
        # A moment in it is none.
        raise LogUnavailable(f"tool_call_attempts is damaged ({error}); run verify, then rebuild") from error


def _suspects(rows: Sequence[Sequence[Any]]) -> list[Suspect]:
    return [Suspect(stream, tenant_of(tenant), *columns) for stream, tenant, *columns in rows]
