"""SQLite's one writer: a connection, and the transaction that turns a batch of appends into rows.

Runs in a worker thread, one batch at a time. Sync on purpose: it holds no lock of the event loop.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from events.schema import utc_text
from events.sqlite_statements import (
    FIND_PAYLOAD,
    FIND_STREAM,
    INSERT_EVENT,
    INSERT_PAYLOAD,
    INSERT_STREAM,
    LAST_POSITION,
    LEASE_ALIVE,
    STREAM_IDS,
    guard_clause,
    statements_for,
)
from events.store import Appended, Guard, InlineProjection, Refusal, StreamAppend, Unit, Verdict

__all__ = ("SqliteWriter",)


class SqliteWriter:
    """Applies batches on one connection. Not thread safe: its store calls it from one thread at a time."""

    def __init__(self, connection: sqlite3.Connection, projection: InlineProjection) -> None:
        self._connection = connection
        self._statements = statements_for(projection)
        self._updates: dict[Guard, str] = {}
        columns = projection.insert_columns
        self._insert_late = columns.index("late")
        self._insert_expiry = columns.index("expires_at")
        self._update_expiry = projection.update_columns.index("expires_at")

    def commit(self, units: Sequence[Unit]) -> list[Verdict]:
        """Write the units in one transaction, synced to disk on return.

        :raises sqlite3.Error: if the database failed; then nothing was written
        """
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            batch = _Batch(connection.execute(LAST_POSITION).fetchone()[0])
            verdicts = [self._unit(unit, batch) for unit in units]
            connection.executemany(INSERT_EVENT, batch.rows)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        return verdicts

    def _unit(self, unit: Unit, batch: _Batch) -> Verdict:
        if len(unit) == 1:
            return (self._append(unit[0], batch),)
        before = (batch.position, len(batch.rows))
        self._connection.execute("SAVEPOINT unit")
        verdict = tuple([self._append(append, batch) for append in unit])
        if any(isinstance(entry, Refusal) for entry in verdict):
            self._connection.execute("ROLLBACK TO unit")
            batch.position = before[0]
            del batch.rows[before[1] :]
        self._connection.execute("RELEASE unit")
        return verdict

    def _append(self, append: StreamAppend, batch: _Batch) -> Appended | Refusal:
        found = self._connection.execute(FIND_STREAM, (append.tenant, append.key)).fetchone()
        if append.dead_worker is not None and self._alive(append.dead_worker, batch.text):
            return self._refusal(found, lease_alive=True)
        if append.expected_version == 0:
            if found is not None:
                return self._repeated(found[0], append) or self._refusal(found)
            stream = batch.position + 1
            self._begin(append, stream, batch)
        elif found is None:
            return Refusal()
        else:
            stream = found[0]
            if append.check_repeat and (repeated := self._repeated(stream, append)):
                return repeated
            if not self._change(append, stream, batch):
                return self._repeated(stream, append) or self._refusal(found)
        for payload in append.payloads:
            if self._connection.execute(FIND_PAYLOAD, (append.tenant, payload.digest)).fetchone() is None:
                row = (append.tenant, payload.digest, payload.length, payload.content)
                self._connection.execute(INSERT_PAYLOAD, row)
        return batch.add(append, stream)

    def _alive(self, worker: str, now: str) -> bool:
        return self._connection.execute(LEASE_ALIVE, (worker, now)).fetchone() is not None

    def _begin(self, append: StreamAppend, stream: int, batch: _Batch) -> None:
        values = list(append.change.values)
        values[self._insert_late] = bool(values[self._insert_late])
        values[self._insert_expiry] = _moment(values[self._insert_expiry])
        self._connection.execute(INSERT_STREAM, (append.tenant, append.key, stream))
        count = len(append.events)
        tail = (batch.text, batch.text, count, batch.position + count)
        row = (stream, append.tenant, append.key, *values, *tail)
        self._connection.execute(self._statements.insert_row, row)

    def _change(self, append: StreamAppend, stream: int, batch: _Batch) -> bool:
        guard = append.change.guard
        if guard is None:
            return False
        values = append.change.values
        if values[self._update_expiry] is not None:
            index = self._update_expiry
            values = (*values[:index], _moment(values[index]), *values[index + 1 :])
        count = len(append.events)
        version = append.expected_version + count
        row = (*values, batch.text, version, batch.position + count, stream, append.tenant, append.expected_version)
        return self._connection.execute(self._update(guard), row).rowcount == 1

    def _update(self, guard: Guard) -> str:
        statement = self._updates.get(guard)
        if statement is None:
            statement = self._updates[guard] = self._statements.update_row + guard_clause(guard)
        return statement

    def _repeated(self, stream: int, append: StreamAppend) -> Appended | None:
        """Return where these very events stand already, or None: a resend is told from a rival by its ids."""
        there = {row[0]: row for row in self._connection.execute(STREAM_IDS, (stream,))}
        rows = [there.get(event.id) for event in append.events]
        if any(row is None for row in rows):
            return None
        known = [row for row in rows if row is not None]
        return Appended(tuple([row[1] for row in known]), datetime.fromisoformat(known[0][2]))

    def _refusal(self, found: Any, lease_alive: bool = False) -> Refusal:
        if found is None:
            return Refusal(lease_alive=lease_alive)
        row = self._connection.execute(self._statements.read_row, (found[0],)).fetchone()
        if row is None:
            return Refusal(lease_alive=lease_alive)
        version, status, gate, pause_type, late = row
        return Refusal(version, status, gate, pause_type, bool(late), lease_alive)


class _Batch:
    """What one transaction has taken so far: the last position, and the event rows to insert at its end."""

    def __init__(self, position: int) -> None:
        self.position = position
        self.moment = datetime.now(UTC)
        self.text = utc_text(self.moment)
        self.rows: list[tuple[Any, ...]] = []

    def add(self, append: StreamAppend, stream: int) -> Appended:
        position, version = self.position, append.expected_version
        for event in append.events:
            position += 1
            version += 1
            self.rows.append(
                (
                    position,
                    stream,
                    version,
                    append.tenant,
                    append.key,
                    event.id,
                    event.kind,
                    event.schema_version,
                    self.text,
                    event.data,
                )
            )
        positions = tuple(range(self.position + 1, position + 1))
        self.position = position
        return Appended(positions, self.moment)


def _moment(value: Any) -> str | None:
    return None if value is None else utc_text(value)
