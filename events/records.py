"""Records: the log's rows as they are stored, undecoded, for what must see every one of them (sealer, verify, rebuild).

A record is the tuple (position, stream, version, tenant, key, id, type, schema_version, recorded_at, data). ``data``
and ``recorded_at`` are as the driver gives them: text or bytes, text or datetime.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeAlias

from sqlalchemy import BigInteger, ColumnElement, Integer, Select, cast, literal, select, tuple_, type_coerce
from sqlalchemy.types import NullType, UserDefinedType

from events.schema import events, utc_text
from events.store import AS_STORED, Store

__all__ = (
    "Pager",
    "Record",
    "changed_streams",
    "moment_of",
    "moment_text",
    "raw_text",
    "records_after",
    "records_of",
    "stream_records",
)

Record: TypeAlias = Sequence[Any]

_LARGEST = 1000
_SMALLEST = 16
_COMFORTABLE = 4_000_000


class Pager:
    """How many rows to ask for next: it follows the size of what was read, so that memory stays flat."""

    def __init__(self, size: int = 32) -> None:
        self.size = size

    def saw(self, rows: int, characters: int) -> None:
        """Take note of a page that was read."""
        if characters > _COMFORTABLE:
            self.size = max(_SMALLEST, self.size // 4)
        elif rows >= self.size and characters * 2 < _COMFORTABLE:
            self.size = min(_LARGEST, self.size * 2)


class _Blob(UserDefinedType[bytes]):
    cache_ok = True

    def get_col_spec(self, **kw: Any) -> str:  # noqa: ARG002
        """Name the type."""
        return "BLOB"


def raw_text(column: ColumnElement[Any], dialect: str) -> ColumnElement[Any]:
    """Return a text column so that reading it cannot fail: SQLite hands out damaged UTF-8 only as bytes."""
    return type_coerce(cast(column, _Blob()), NullType()) if dialect == "sqlite" else column


def _columns(dialect: str) -> tuple[ColumnElement[Any], ...]:
    plain = (events.c.position, events.c.stream, events.c.version, events.c.tenant, events.c.key, events.c.id)
    return (
        *plain,
        events.c.type,
        events.c.schema_version,
        type_coerce(events.c.recorded_at, NullType()),
        raw_text(events.c.data, dialect),
    )


def moment_of(stored: Any) -> datetime:
    """Return a stored moment. :raises ValueError: if it is not one"""
    return stored if isinstance(stored, datetime) else datetime.fromisoformat(stored)


def moment_text(stored: Any) -> str:
    """Return a stored moment as text, the same on both databases."""
    return utc_text(stored) if isinstance(stored, datetime) else str(stored)


def records_of(numbers: Sequence[int], dialect: str) -> Select[Any]:
    """Return the statement for all records of some streams, in order of (stream, version)."""
    statement = select(*_columns(dialect)).where(events.c.stream.in_(numbers))
    return statement.order_by(events.c.stream, events.c.version)


def changed_streams(after: int, upto: int | None = None) -> Select[Any]:
    """Return the statement for the numbers of the streams with events at ``after`` < position (<= ``upto``)."""
    statement = select(events.c.stream).where(events.c.position > after).distinct()
    return statement if upto is None else statement.where(events.c.position <= upto)


async def records_after(store: Store, after: int, upto: int, pager: Pager) -> Sequence[Record]:
    """Return a page of records with ``after`` < position <= ``upto``, in order of position."""
    statement = select(*_columns(store.dialect)).where(events.c.position > after, events.c.position <= upto)
    page = statement.order_by(events.c.position).limit(pager.size)
    rows = await store.read(page.execution_options(**{AS_STORED: True}))
    pager.saw(len(rows), sum([len(row[9]) for row in rows]))
    return rows


async def stream_records(store: Store, after: tuple[int, int], upto: int, pager: Pager) -> Sequence[Record]:
    """Return a page of records beyond the (stream, version) ``after`` of streams up to ``upto``, in that order."""
    place = tuple_(events.c.stream, events.c.version) > tuple_(
        literal(after[0], BigInteger), literal(after[1], Integer)
    )
    statement = select(*_columns(store.dialect)).where(place, events.c.stream <= upto)
    page = statement.order_by(events.c.stream, events.c.version).limit(pager.size)
    rows = await store.read(page.execution_options(**{AS_STORED: True}))
    pager.saw(len(rows), sum([len(row[9]) for row in rows]))
    return rows
