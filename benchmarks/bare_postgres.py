"""Postgres without the product: the same rows in the same tables, on one connection, by prepared statements."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import asyncpg
from anyio.from_thread import start_blocking_portal

from benchmarks.workload import make_pairs, prepared
from events.store import StreamAppend
from projections.attempts import INSERT_COLUMNS

__all__ = ("BarePostgres",)

_TYPES = {"headless": "boolean", "idempotent": "boolean", "late": "boolean", "expires_at": "timestamptz"}
_COLUMNS = ", ".join(INSERT_COLUMNS)
_EVENT_COLUMNS = "position, stream, version, tenant, key, id, type, schema_version, recorded_at, data"


def _typed(first: int, array: str) -> str:
    """Return the parameters of the state columns, from number ``first``, each with its type."""
    numbered = enumerate(INSERT_COLUMNS, first)
    return ", ".join(f"${number}::{_TYPES.get(name, 'text')}{array}" for number, name in numbered)


_OPEN = f"""
WITH made AS (
    INSERT INTO tool_call_streams (tenant, key, stream) SELECT $1, $2, nextval('tool_call_position')
    ON CONFLICT DO NOTHING RETURNING stream
), row AS (
    INSERT INTO tool_call_attempts (stream, tenant, key, {_COLUMNS}, proposed_at, updated_at, version, position)
    SELECT stream, $1, $2, {_typed(5, "")}, now(), now(), 1, stream FROM made
)
INSERT INTO tool_call_events ({_EVENT_COLUMNS})
SELECT stream, stream, 1, $1, $2, $3, 'proposed', 1, now(), $4 FROM made
"""

_CLOSE = f"""
WITH changed AS (
    UPDATE tool_call_attempts SET status = 'executed', result_status = 'completed', result = $5, updated_at = now(),
        version = 2, position = nextval('tool_call_position')
    WHERE stream = (SELECT stream FROM tool_call_streams WHERE tenant = $1 AND key = $2)
      AND version = 1 AND status = $6 AND gate = ANY ($7)
    RETURNING stream, position
)
INSERT INTO tool_call_events ({_EVENT_COLUMNS})
SELECT position, stream, 2, $1, $2, $3, 'executed', 1, now(), $4 FROM changed
"""

_OPEN_MANY = f"""
WITH wanted AS (
    SELECT nextval('tool_call_position') AS position, given.*
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], {_typed(5, "[]")})
      AS given (tenant, key, id, data, {_COLUMNS})
), made AS (
    INSERT INTO tool_call_streams (tenant, key, stream) SELECT tenant, key, position FROM wanted
), row AS (
    INSERT INTO tool_call_attempts (stream, tenant, key, {_COLUMNS}, proposed_at, updated_at, version, position)
    SELECT position, tenant, key, {_COLUMNS}, now(), now(), 1, position FROM wanted
)
INSERT INTO tool_call_events ({_EVENT_COLUMNS})
SELECT position, position, 1, tenant, key, id, 'proposed', 1, now(), data FROM wanted
"""

_CLOSE_MANY = f"""
WITH wanted AS (
    SELECT s.stream, given.* FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
      AS given (tenant, key, id, data, result)
    JOIN tool_call_streams s ON s.tenant = given.tenant AND s.key = given.key
), changed AS (
    UPDATE tool_call_attempts t SET status = 'executed', result_status = 'completed', result = wanted.result,
        updated_at = now(), version = 2, position = nextval('tool_call_position')
    FROM wanted WHERE t.stream = wanted.stream AND t.version = 1 AND t.status = $6 AND t.gate = ANY ($7)
    RETURNING t.stream, t.position, t.tenant, t.key, wanted.id, wanted.data
)
INSERT INTO tool_call_events ({_EVENT_COLUMNS})
SELECT position, stream, 2, tenant, key, id, 'executed', 1, now(), data FROM changed
"""

_GUARD = ("proposed", ["open", "claimed"])


class BarePostgres:
    """Appends by hand: per append one statement, which is one transaction and one round trip.

    Runs in an event loop of its own, in a thread; the caller waits meanwhile.

    :param url: a database that the product has made
    """

    def __init__(self, url: str) -> None:
        self._stack = ExitStack()
        self._portal = self._stack.enter_context(start_blocking_portal("asyncio"))
        self._portal.call(self._connect, url)

    async def _connect(self, url: str) -> None:
        self._connection = await asyncpg.connect(url)
        self._open = await self._connection.prepare(_OPEN)
        self._close = await self._connection.prepare(_CLOSE)
        self._open_many = await self._connection.prepare(_OPEN_MANY)
        self._close_many = await self._connection.prepare(_CLOSE_MANY)

    def durability(self) -> str:
        """Return the settings as the server reports them."""
        return self._portal.call(self._durability)

    async def _durability(self) -> str:
        names = ("fsync", "synchronous_commit")
        return " ".join([f"{name}={await self._connection.fetchval(f'SHOW {name}')}" for name in names])

    def commit_times(self, seconds: float) -> list[float]:
        """Commit one append after another for so long, and return what each took, in seconds."""
        return self._portal.call(self._commit_times, seconds)

    async def _commit_times(self, seconds: float) -> list[float]:
        times: list[float] = []
        elapsed = 0.0
        while elapsed < seconds:
            pairs = make_pairs(16)
            calls = [(self._open, _opening(prepared(pair.proposed, 0))) for pair in pairs]
            calls += [(self._close, _closing(prepared(pair.executed, 1))) for pair in pairs]
            for statement, arguments in calls:
                started = time.perf_counter()
                await statement.fetchrow(*arguments)
                times.append(time.perf_counter() - started)
                elapsed += times[-1]
        return times

    def batches(self, size: int, seconds: float) -> float:
        """Commit batches of ``size`` appends for so long, and return the appends a second: the limit of this schema."""
        return self._portal.call(self._batches, size, seconds)

    async def _batches(self, size: int, seconds: float) -> float:
        appends = 0
        elapsed = 0.0
        while elapsed < seconds:
            pairs = make_pairs(size)
            opening = [_opening(prepared(pair.proposed, 0)) for pair in pairs]
            closing = [_closing(prepared(pair.executed, 1))[:5] for pair in pairs]
            started = time.perf_counter()
            await self._open_many.fetchrow(*_arrays(opening))
            await self._close_many.fetchrow(*_arrays(closing), *_GUARD)
            elapsed += time.perf_counter() - started
            appends += 2 * size
        return appends / elapsed

    def close(self) -> None:
        """Close the connection and end the thread."""
        self._portal.call(self._connection.close)
        self._stack.close()


def _opening(append: StreamAppend) -> tuple[Any, ...]:
    event = append.events[0]
    return (append.tenant, append.key, event.id, event.data, *append.change.values)


def _closing(append: StreamAppend) -> tuple[Any, ...]:
    event = append.events[0]
    return (append.tenant, append.key, event.id, event.data, event.result, *_GUARD)


def _arrays(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return list(zip(*rows, strict=True))
