"""Opening a Postgres store in a test, and asking it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import sqlalchemy as sa

from engine.migration import CHAINS
from events.postgres import PostgresStore, open_postgres
from events.schema import events
from events.store import Outcome, StreamAppend
from events.types import ToolEvent
from projections.attempts import AttemptsProjection
from projections.schema import attempts

__all__ = ("entry", "one", "opened", "positions", "row_of")


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
