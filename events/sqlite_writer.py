"""SQLite's one writer: a connection, and the transaction that turns a batch of appends into rows.

Runs in the store's own thread. Sync on purpose: it holds no lock of the event loop.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from io import BytesIO
from itertools import chain
from typing import Any, TypeAlias

from events.sqlite_batch import RowForms, SqliteBatch
from events.sqlite_statements import (
    FIND_PAYLOAD,
    INSERT_PAYLOAD,
    LAST_POSITION,
    LEASE_ALIVE,
    STREAM_IDS,
    find_streams,
    in_pieces,
    insert_events,
    insert_rows,
    insert_streams,
    moved_rows,
    read_row,
    update_rows,
)
from events.store import Appended, InlineProjection, Refusal, StreamAppend, Unit, Verdict

__all__ = ("SqliteWriter",)

_Entry: TypeAlias = Appended | Refusal
_Found: TypeAlias = dict[tuple[str, str], tuple[int, int | None]]
_NOWHERE = (None, None)
_LONG = 1 << 24
_PIECE = 1 << 21


class SqliteWriter:
    """Applies batches on one connection. Not thread safe: its store calls it from one thread only.

    :param epoch: SQL of a number that is read with every batch
    :ivar epoch: that number, as the newest batch saw it
    """

    def __init__(self, connection: sqlite3.Connection, projection: InlineProjection, epoch: str | None = None) -> None:
        self.epoch = 0
        self._read_epoch = epoch
        self._connection = connection
        self._forms = RowForms(projection)
        self._table = projection.table

    def commit(self, units: Sequence[Unit]) -> list[Verdict]:
        """Write the units in one transaction, synced to disk on return.

        :raises sqlite3.Error: if the database failed; then nothing was written
        """
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            batch = SqliteBatch(self._forms, connection.execute(LAST_POSITION).fetchone()[0])
            singles = iter(self._write([unit[0] for unit in units if len(unit) == 1], batch))
            verdicts = [(next(singles),) if len(unit) == 1 else self._unit(unit, batch) for unit in units]
            epoch = self._epoch()
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        self.epoch = epoch
        return verdicts

    def _epoch(self) -> int:
        if self._read_epoch is None:
            return 0
        found = self._connection.execute(self._read_epoch).fetchone()
        return int(found[0]) if found else 0

    def _unit(self, unit: Unit, before: SqliteBatch) -> Verdict:
        batch = before.following()
        self._connection.execute("SAVEPOINT unit")
        verdict = tuple(self._write(unit, batch))
        if any(isinstance(entry, Refusal) for entry in verdict):
            self._connection.execute("ROLLBACK TO unit")
        else:
            before.position = batch.position
        self._connection.execute("RELEASE unit")
        return verdict

    def _write(self, appends: Sequence[StreamAppend], batch: SqliteBatch) -> list[_Entry]:
        """Write the appends, each for itself: first what can be told beforehand, then all rows, in few statements."""
        found = self._find(appends)
        entries = [self._enter(append, found, batch) for append in appends]
        self._insert_streams(batch)
        refused = self._change_rows(batch)
        self._insert_payloads(batch, refused)
        self._insert_events(batch, refused)
        if not refused:
            return entries
        streams = [found.get((append.tenant, append.key), _NOWHERE)[0] for append in appends]
        places = zip(appends, entries, streams, strict=True)
        return [
            self._known(stream, append) if stream is not None and stream in refused else entry
            for append, entry, stream in places
        ]

    def _find(self, appends: Sequence[StreamAppend]) -> _Found:
        names = [(append.tenant, append.key) for append in appends]
        found: _Found = {}
        for piece in in_pieces(names):
            statement = find_streams(self._table, len(piece))
            for tenant, key, stream, version in self._connection.execute(statement, [*chain.from_iterable(piece)]):
                found[tenant, key] = (stream, version)
        return found

    def _enter(self, append: StreamAppend, found: _Found, batch: SqliteBatch) -> _Entry:
        """Note in the batch what an append writes, unless it is known or refused already."""
        stream, version = found.get((append.tenant, append.key), _NOWHERE)
        if append.dead_worker is not None and self._alive(append.dead_worker, batch.text):
            return self._refusal(stream, lease_alive=True)
        if stream is None:
            return batch.begin(append) if append.expected_version == 0 else Refusal()
        if append.expected_version == 0 or append.change.guard is None or version != append.expected_version:
            return self._known(stream, append)
        if append.check_repeat and (repeated := self._repeated(stream, append)):
            return repeated
        return batch.change(append, stream)

    def _insert_streams(self, batch: SqliteBatch) -> None:
        for piece in in_pieces(batch.streams):
            self._connection.execute(insert_streams(len(piece)), [*chain.from_iterable(piece)])
        for columns, rows in batch.rows.items():
            for part in in_pieces(rows):
                statement = insert_rows(self._table, columns, len(part))
                self._connection.execute(statement, [batch.text, *chain.from_iterable(part)])

    def _change_rows(self, batch: SqliteBatch) -> set[int]:
        """Move the state rows along and return the streams whose guard did not hold."""
        refused: set[int] = set()
        for (columns, guard), rows in batch.changes.items():
            for piece in in_pieces(rows):
                statement = update_rows(self._table, columns, guard, len(piece))
                done = self._connection.execute(statement, [batch.text, *chain.from_iterable(piece)])
                if done.rowcount < len(piece):
                    streams = [row[0] for row in piece]
                    moved = self._connection.execute(moved_rows(self._table, len(piece)), (batch.first, *streams))
                    refused |= set(streams).difference(chain.from_iterable(moved))
        return refused

    def _insert_payloads(self, batch: SqliteBatch, refused: set[int]) -> None:
        for stream, tenant, payload in batch.payloads:
            known = self._connection.execute(FIND_PAYLOAD, (tenant, payload.digest)).fetchone()
            if known is None and stream not in refused:
                row = (tenant, payload.digest, payload.length, _bound(payload.content))
                self._connection.execute(INSERT_PAYLOAD, row)

    def _insert_events(self, batch: SqliteBatch, refused: set[int]) -> None:
        rows = [row for row in batch.events if row[1] not in refused] if refused else batch.events
        for piece in in_pieces(rows):
            self._connection.execute(insert_events(len(piece)), [batch.text, *chain.from_iterable(piece)])

    def _alive(self, worker: str, now: str) -> bool:
        return self._connection.execute(LEASE_ALIVE, (worker, now)).fetchone() is not None

    def _known(self, stream: int, append: StreamAppend) -> _Entry:
        return self._repeated(stream, append) or self._refusal(stream)

    def _repeated(self, stream: int, append: StreamAppend) -> Appended | None:
        """Return where these very events stand already, or None: a resend is told from a rival by its ids."""
        there = {row[0]: row for row in self._connection.execute(STREAM_IDS, (stream,))}
        rows = [there.get(event.id) for event in append.events]
        if any(row is None for row in rows):
            return None
        known = [row for row in rows if row is not None]
        return Appended(tuple([row[1] for row in known]), datetime.fromisoformat(known[0][2]))

    def _refusal(self, stream: int | None, lease_alive: bool = False) -> Refusal:
        row: Any = None
        if stream is not None:
            row = self._connection.execute(read_row(self._table), (stream,)).fetchone()
        if row is None:
            return Refusal(lease_alive=lease_alive)
        version, status, gate, pause_type, late = row
        return Refusal(version, status, gate, pause_type, bool(late), lease_alive)


def _bound(content: str) -> str | bytes:
    """Return a text as it is bound: a very long one in bytes, made piece by piece.

    The driver would hold the interpreter until it has encoded it.
    """
    if len(content) <= _LONG:
        return content
    with BytesIO() as out:
        for start in range(0, len(content), _PIECE):
            out.write(content[start : start + _PIECE].encode())
        return out.getvalue()
