"""The SQL of SQLite's writer: every statement named, generated once from the inline projection's columns."""

from __future__ import annotations

import msgspec

from events.store import Guard, InlineProjection

__all__ = (
    "FIND_PAYLOAD",
    "FIND_STREAM",
    "INSERT_EVENT",
    "INSERT_PAYLOAD",
    "INSERT_STREAM",
    "LAST_POSITION",
    "LEASE_ALIVE",
    "STREAM_IDS",
    "Statements",
    "guard_clause",
    "statements_for",
)

INSERT_EVENT = (
    "INSERT INTO tool_call_events "
    "(position, stream, version, tenant, key, id, type, schema_version, recorded_at, data) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
LAST_POSITION = "SELECT coalesce(max(position), 0) FROM tool_call_events"
FIND_STREAM = "SELECT stream FROM tool_call_streams WHERE tenant = ? AND key = ?"
INSERT_STREAM = "INSERT INTO tool_call_streams (tenant, key, stream) VALUES (?, ?, ?)"
FIND_PAYLOAD = "SELECT 1 FROM tool_call_payloads WHERE tenant = ? AND digest = ?"
INSERT_PAYLOAD = "INSERT INTO tool_call_payloads (tenant, digest, length, content) VALUES (?, ?, ?, ?)"
STREAM_IDS = "SELECT id, position, recorded_at FROM tool_call_events WHERE stream = ? ORDER BY version"
LEASE_ALIVE = "SELECT 1 FROM worker_leases WHERE worker = ? AND expires_at > ?"


class Statements(msgspec.Struct, frozen=True):
    """Statements that depend on the inline projection."""

    insert_row: str
    update_row: str
    read_row: str


def statements_for(projection: InlineProjection) -> Statements:
    """Generate the state row's statements.

    ``insert_row`` takes (stream, tenant, key, *insert_columns, proposed_at, updated_at, version, position).
    ``update_row`` takes (*update columns in their order, updated_at, version, position, stream, tenant, expected
    version) and wants :func:`guard_clause` appended.
    """
    table = projection.table
    columns = (
        "stream",
        "tenant",
        "key",
        *projection.insert_columns,
        "proposed_at",
        "updated_at",
        "version",
        "position",
    )
    marks = ", ".join("?" * len(columns))
    # "late" is NOT NULL and False unless an event says otherwise.
    insert = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608
    index = {name: number for number, name in enumerate(projection.update_columns, 1)}
    sets = [_assignment(name, number, index["gate"]) for name, number in index.items()]
    count = len(index)
    sets += [f"updated_at = ?{count + 1}", f"version = ?{count + 2}", f"position = ?{count + 3}"]
    update = (
        f"UPDATE {table} SET {', '.join(sets)} "  # noqa: S608
        f"WHERE stream = ?{count + 4} AND tenant = ?{count + 5} AND version = ?{count + 6}"
    )
    read = f"SELECT version, status, gate, pause_type, late FROM {table} WHERE stream = ?"  # noqa: S608
    return Statements(insert, update, read)


def _assignment(name: str, number: int, gate: int) -> str:
    if name in ("pause_type", "expires_at"):
        return f"{name} = CASE WHEN ?{gate} IS NULL THEN {name} ELSE ?{number} END"
    return f"{name} = coalesce(?{number}, {name})"


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
