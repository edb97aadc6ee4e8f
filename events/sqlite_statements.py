"""The SQL of SQLite's writer: every statement named, generated from the inline projection's columns.

Statements take many rows at once. Each step of a statement gives Python's lock away and gets it back, which costs more
than the row itself while the event loop is busy in another thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

from events.store import Guard

__all__ = (
    "FIND_PAYLOAD",
    "INSERT_PAYLOAD",
    "LAST_POSITION",
    "LEASE_ALIVE",
    "STREAM_IDS",
    "find_streams",
    "guard_clause",
    "in_pieces",
    "insert_events",
    "insert_rows",
    "insert_streams",
    "moved_rows",
    "read_row",
    "update_rows",
)

LAST_POSITION = "SELECT coalesce(max(position), 0) FROM tool_call_events"
FIND_PAYLOAD = "SELECT 1 FROM tool_call_payloads WHERE tenant = ? AND digest = ?"
INSERT_PAYLOAD = "INSERT INTO tool_call_payloads (tenant, digest, length, content) VALUES (?, ?, ?, CAST(? AS TEXT))"
STREAM_IDS = "SELECT id, position, recorded_at FROM tool_call_events WHERE stream = ? ORDER BY version"
LEASE_ALIVE = "SELECT 1 FROM worker_leases WHERE worker = ? AND expires_at > ?"

T = TypeVar("T")

_SIZES = (64, 32, 16, 8, 4, 2, 1)


def in_pieces(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split rows so that seven lengths are enough for any number of them: each length is a statement to compile."""
    first = 0
    for size in _SIZES:
        while len(rows) - first >= size:
            yield rows[first : first + size]
            first += size


def _values(rows: int, width: int, first: int = 1, tail: str = "") -> str:
    """Return ``rows`` lists of ``width`` numbered parameters, from number ``first``, each followed by ``tail``."""
    starts = range(first, first + rows * width, width)
    return ", ".join(
        ["(" + ", ".join([f"?{start + column}" for column in range(width)]) + tail + ")" for start in starts]
    )


@lru_cache(maxsize=16)
def find_streams(table: str, rows: int) -> str:
    """Return the select of (tenant, key, stream, version) for ``rows`` pairs of tenant and key."""
    return (
        "SELECT s.tenant, s.key, s.stream, t.version "  # noqa: S608
        f"FROM (VALUES {_values(rows, 2)}) AS wanted "
        "CROSS JOIN tool_call_streams AS s ON s.tenant = wanted.column1 AND s.key = wanted.column2 "
        f"LEFT JOIN {table} AS t ON t.stream = s.stream"
    )


@lru_cache(maxsize=16)
def insert_streams(rows: int) -> str:
    """Return the insert of ``rows`` times (tenant, key, stream)."""
    return f"INSERT INTO tool_call_streams (tenant, key, stream) VALUES {_values(rows, 3)}"  # noqa: S608


@lru_cache(maxsize=16)
def insert_events(rows: int) -> str:
    """Return the insert of events: the moment, then ``rows`` times (position … schema_version, data)."""
    return (
        "INSERT INTO tool_call_events "  # noqa: S608
        "(position, stream, version, tenant, key, id, type, schema_version, data, recorded_at) "
        f"VALUES {_values(rows, 9, 2, ', ?1')}"
    )


@lru_cache(maxsize=256)
def insert_rows(table: str, columns: tuple[str, ...], rows: int) -> str:
    """Return the insert of state rows: the moment, then ``rows`` times (stream, tenant, key, version, position,
    *columns). A column that is not among ``columns`` is NULL."""
    names = ("stream", "tenant", "key", "version", "position", *columns, "proposed_at", "updated_at")
    marks = _values(rows, len(names) - 2, 2, ", ?1, ?1")
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES {marks}"  # noqa: S608


@lru_cache(maxsize=256)
def update_rows(table: str, columns: tuple[str, ...], guard: Guard, rows: int) -> str:
    """Return the guarded update of state rows: the moment, then ``rows`` times (stream, tenant, expected version,
    version, position, *columns). A column that is not among ``columns`` stays as it is."""
    sets = [f"{name} = wanted.column{number}" for number, name in enumerate(("version", "position", *columns), 4)]
    return (
        f"UPDATE {table} SET {', '.join(sets)}, updated_at = ?1 "  # noqa: S608
        f"FROM (VALUES {_values(rows, 5 + len(columns), 2)}) AS wanted "
        f"WHERE {table}.stream = wanted.column1 AND {table}.tenant = wanted.column2 "
        f"AND {table}.version = wanted.column3{guard_clause(guard)}"
    )


@lru_cache(maxsize=16)
def moved_rows(table: str, rows: int) -> str:
    """Return the select of those of ``rows`` streams whose state row stands beyond a position, which comes first."""
    marks = ", ".join(["?"] * rows)
    return f"SELECT stream FROM {table} WHERE position > ? AND stream IN ({marks})"  # noqa: S608


@lru_cache(maxsize=4)
def read_row(table: str) -> str:
    """Return the select of what a refusal tells of a stream's state row."""
    return f"SELECT version, status, gate, pause_type, late FROM {table} WHERE stream = ?"  # noqa: S608


def guard_clause(guard: Guard) -> str:
    """Return the guard as SQL; its words come from the transition table, never from outside."""
    clause = f" AND status IN ({_listed(guard.statuses)})"
    if guard.phases is not None:
        clause += f" AND gate || coalesce(':' || pause_type, '') IN ({_listed(guard.phases)})"
    if guard.not_late:
        clause += " AND NOT late"
    if guard.idempotent:
        clause += " AND idempotent"
    return clause


def _listed(words: str) -> str:
    return ", ".join(f"'{word}'" for word in words.split())
