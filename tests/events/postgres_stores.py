"""Opening a Postgres store in a test, and asking it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import sqlalchemy as sa

from engine.migration import CHAINS
from events.bridge import open_bridge
from events.postgres import PostgresStore, open_postgres
from events.postgres_append import AppendCall
from events.schema import events
from events.store import Outcome, StreamAppend
from events.types import ToolEvent
from projections.attempts import AttemptsProjection
from projections.schema import attempts

__all__ = ("entry", "one", "opened", "positions", "row_of", "slow_writer")


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[PostgresStore]:
    store = await open_postgres(url, AttemptsProjection(), CHAINS)
    try:
        yield store
    finally:
        await store.aclose()


async def one(store: PostgresStore, unit: StreamAppend) -> Any:
    """Commit one append and return its verdict, raising where it has none."""
    return entry((await store.commit([(unit,)]))[0])


def entry(outcome: Outcome) -> Any:
    if not isinstance(outcome, tuple):
        raise outcome
    assert len(outcome) == 1
    return outcome[0]


async def positions(store: PostgresStore) -> list[int]:
    return [row[0] for row in await store.read(sa.select(events.c.position).order_by(events.c.position))]


async def row_of(store: PostgresStore, event: ToolEvent) -> Any:
    return (await store.read(sa.select(attempts).where(attempts.c.key == event.key)))[0]


class Slow:
    """A session of its own, whose transaction stays open until it is told to end."""

    def __init__(self, connection: asyncpg.Connection, call: Any) -> None:
        self.connection = connection
        self.call = call
        self._function = AppendCall(AttemptsProjection())

    async def begin(self, *appends: StreamAppend) -> None:
        await self.call(self.connection.execute, "BEGIN")
        arguments = self._function.arguments(appends, together=False)
        await self.call(self.connection.fetchrow, self._function.statement, *arguments)

    async def lock(self, first: ToolEvent) -> None:
        """Keep a call's row locked."""
        await self.call(self.connection.execute, "BEGIN")
        await self.call(self.connection.execute, "SELECT FROM tool_call_attempts WHERE key = $1 FOR UPDATE", first.key)

    async def end(self, verb: str) -> None:
        await self.call(self.connection.execute, verb)


@asynccontextmanager
async def slow_writer(url: str) -> AsyncIterator[Slow]:
    bridge = await open_bridge()
    connection = await bridge.call(asyncpg.connect, url)
    try:
        yield Slow(connection, bridge.call)
    finally:
        await bridge.call(connection.close)
        await bridge.aclose()
