"""SQLite without the product: the same rows in the same tables, on one connection."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from benchmarks.workload import Pair, make_pairs, prepared
from events.schema import utc_text
from events.store import StreamAppend
from projections.attempts import INSERT_COLUMNS

__all__ = ("BareSqlite",)

_FIND = "SELECT stream FROM tool_call_streams WHERE tenant = ? AND key = ?"
_STREAM = "INSERT INTO tool_call_streams (tenant, key, stream) VALUES (?, ?, ?)"
_ROW = (
    f"INSERT INTO tool_call_attempts (stream, tenant, key, version, position, {', '.join(INSERT_COLUMNS)}, "
    f"proposed_at, updated_at) VALUES ({', '.join('?' * (len(INSERT_COLUMNS) + 7))})"
)
_CHANGE = (
    "UPDATE tool_call_attempts SET status = ?, result_status = ?, result = ?, updated_at = ?, position = ?, "
    "version = 2 WHERE stream = ? AND tenant = ? AND version = 1 AND status = 'proposed' "
    "AND gate || coalesce(':' || pause_type, '') IN ('open', 'claimed', 'paused:requires_client_execution')"
)
_EVENT = (
    "INSERT INTO tool_call_events "
    "(position, stream, version, tenant, key, id, type, schema_version, recorded_at, data) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class _Rows(msgspec.Struct, frozen=True):
    """One append as rows."""

    append: StreamAppend
    position: int
    stream: int


class BareSqlite:
    """Appends by hand: per append the stream, the guarded state row and the event, in WAL mode, synchronous=FULL.

    :param path: a database that the product has made
    """

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.execute("PRAGMA wal_autocheckpoint=8000")
        self._position = 0

    def durability(self) -> str:
        """Return the settings as the database reports them."""
        mode = self._connection.execute("PRAGMA journal_mode").fetchone()[0]
        level = self._connection.execute("PRAGMA synchronous").fetchone()[0]
        return f"journal_mode={mode} synchronous={level}"

    def commit_times(self, seconds: float) -> list[float]:
        """Commit one append after another for so long, and return what each took, in seconds."""
        times: list[float] = []
        elapsed = 0.0
        while elapsed < seconds:
            for rows in self._rows(make_pairs(16)):
                started = time.perf_counter()
                self._commit(rows)
                times.append(time.perf_counter() - started)
                elapsed += times[-1]
        return times

    def batches(self, size: int, seconds: float) -> float:
        """Commit batches of ``size`` appends for so long, and return the appends a second: the limit of this schema."""
        appends = 0
        elapsed = 0.0
        while elapsed < seconds:
            rows = self._rows(make_pairs(size))
            for part in (rows[:size], rows[size:]):
                started = time.perf_counter()
                self._commit_batch(part)
                elapsed += time.perf_counter() - started
                appends += size
        return appends / elapsed

    def _rows(self, pairs: Sequence[Pair]) -> list[_Rows]:
        """Return all the proposals, then all the outcomes."""
        first = self._position + 1
        self._position += 2 * len(pairs)
        numbered = list(enumerate(pairs, first))
        proposals = [_Rows(prepared(pair.proposed, 0), stream, stream) for stream, pair in numbered]
        return proposals + [_Rows(prepared(pair.executed, 1), stream + len(pairs), stream) for stream, pair in numbered]

    def _commit(self, rows: _Rows) -> None:
        run = self._connection.execute
        append = rows.append
        run("BEGIN IMMEDIATE")
        found = run(_FIND, (append.tenant, append.key)).fetchone()
        if append.expected_version == 0:
            assert found is None
            run(_STREAM, (append.tenant, append.key, rows.stream))
            run(_ROW, _opening(rows))
        else:
            assert run(_CHANGE, _change(rows)).rowcount == 1
        run(_EVENT, _event(rows))
        run("COMMIT")

    def _commit_batch(self, batch: Sequence[_Rows]) -> None:
        many = self._connection.executemany
        self._connection.execute("BEGIN IMMEDIATE")
        if batch[0].append.expected_version == 0:
            many(_STREAM, [(rows.append.tenant, rows.append.key, rows.stream) for rows in batch])
            many(_ROW, [_opening(rows) for rows in batch])
        else:
            many(_CHANGE, [_change(rows) for rows in batch])
        many(_EVENT, [_event(rows) for rows in batch])
        self._connection.execute("COMMIT")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _now() -> str:
    return utc_text(datetime.now(UTC))


def _opening(rows: _Rows) -> tuple[Any, ...]:
    append, now = rows.append, _now()
    return (rows.stream, append.tenant, append.key, 1, rows.position, *append.change.values, now, now)


def _change(rows: _Rows) -> tuple[Any, ...]:
    append = rows.append
    return ("executed", "completed", append.events[0].result, _now(), rows.position, rows.stream, append.tenant)


def _event(rows: _Rows) -> tuple[Any, ...]:
    append, event = rows.append, rows.append.events[0]
    version = append.expected_version + 1
    kind = (event.id, event.kind, event.schema_version)
    return (rows.position, rows.stream, version, append.tenant, append.key, *kind, _now(), event.data)
