"""The columns of ``tool_call_attempts`` in raw form: how whole tables of rows are read, compared and written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import compress
from typing import Any

import msgspec
from msgspec.structs import astuple
from sqlalchemy import Column, ColumnElement, Text, type_coerce
from sqlalchemy.types import NullType

from events.keys import tenant_column
from events.records import moment_of, raw_text
from events.schema import utc_text
from projections.fold import text_of
from projections.row import AttemptRow
from projections.schema import attempts

__all__ = (
    "COLUMN_NAMES",
    "bound_values",
    "folded_values",
    "given_columns",
    "raw_columns",
    "stored_values",
    "unlike_columns",
)

COLUMN_NAMES: tuple[str, ...] = tuple(attempts.c.keys())
"""In the order of ``AttemptRow``'s fields; ``tenant`` stands where ``user_id`` does."""

_TENANT = COLUMN_NAMES.index("tenant")
_ERROR = COLUMN_NAMES.index("error")
_JSON = tuple([COLUMN_NAMES.index(name) for name in ("arguments", "result")])
_EXPIRY = COLUMN_NAMES.index("expires_at")
_FLAGS = tuple([COLUMN_NAMES.index(name) for name in ("headless", "idempotent", "late")])
_MOMENTS = tuple([COLUMN_NAMES.index(name) for name in ("expires_at", "proposed_at", "updated_at")])


def raw_columns(dialect: str) -> tuple[ColumnElement[Any], ...]:
    """Return the columns as they are stored, free of conversions; damaged text can be read too."""
    return tuple([_raw(column, dialect) for column in attempts.c])


def _raw(column: Column[Any], dialect: str) -> ColumnElement[Any]:
    if column.name in ("arguments", "result", "error"):
        return raw_text(column, dialect)
    return column if isinstance(column.type, Text) else type_coerce(column, NullType())


def stored_values(columns: Sequence[Any]) -> list[Any]:
    """Return a stored row as :func:`folded_values` returns a folded one; the moments of events stay as stored."""
    values = list(columns)
    for index in _JSON:
        if values[index] is not None:
            values[index] = msgspec.Raw(values[index])
    if isinstance(values[_ERROR], bytes):
        # Damaged text must differ, not fail.
        values[_ERROR] = values[_ERROR].decode(errors="surrogateescape")
    if values[_EXPIRY] is not None:
        values[_EXPIRY] = _moment(values[_EXPIRY])
    return values


def _moment(stored: Any) -> Any:
    try:
        return moment_of(stored)
    except (ValueError, TypeError):
        return stored


def folded_values(row: AttemptRow) -> list[Any]:
    """Return a folded row's values for a comparison; JSON as text, byte by byte."""
    values = list(astuple(row))
    values[_TENANT] = tenant_column(row.user_id)
    for index in _JSON:
        if not isinstance(values[index], msgspec.Raw):
            values[index] = _json(row, index)
    return values


def _json(row: AttemptRow, index: int) -> msgspec.Raw | None:
    if COLUMN_NAMES[index] == "result" and row.result_status is None:
        return None
    return msgspec.Raw(text_of(getattr(row, COLUMN_NAMES[index])))


def bound_values(row: AttemptRow, dialect: str) -> tuple[Any, ...]:
    """Return a folded row's values as the driver takes them."""
    values = folded_values(row)
    for index in _JSON:
        if values[index] is not None:
            values[index] = bytes(values[index]).decode()
    if dialect == "sqlite":
        for index in _MOMENTS:
            if isinstance(values[index], datetime):
                values[index] = utc_text(values[index])
        for index in _FLAGS:
            values[index] = int(values[index])
    return tuple(values)


def given_columns(rows: Sequence[tuple[Any, ...]]) -> tuple[tuple[str, ...], list[Any]]:
    """Return the names of the columns that some row gives, and their values, row after row in one list.

    SQLite's driver takes three times as long to bind a None as a text, and most columns are None in most calls.
    """
    columns = [column.count(None) < len(rows) for column in zip(*rows, strict=True)]
    values = [value for row in rows for value in compress(row, columns)]
    return tuple(compress(COLUMN_NAMES, columns)), values


def unlike_columns(stored: Sequence[Any], folded: Sequence[Any]) -> list[str]:
    """Return the names of the columns in which two rows differ."""
    pairs = zip(COLUMN_NAMES, stored, folded, strict=True)
    return [name for name, left, right in pairs if left != right]
