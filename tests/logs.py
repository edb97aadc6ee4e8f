"""Opening a log for a test, and staging what no public call would do to its tables."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import Connection, insert, select, text

from events import EventLog, Recorded, ToolEvent
from events.codec import Codec
from events.migration import EVENTS_CHAIN
from events.opening import open_log
from events.schema import events as event_table
from projections import AttemptsProjection
from projections.migration import PROJECTIONS_CHAIN

__all__ = ("opened", "recorded_events", "store_raw", "tamper")

_TRIGGERS = {
    "sqlite": "SELECT 'DROP TRIGGER ' || name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": (
        "SELECT format('DROP TRIGGER %I ON %s', tgname, tgrelid::regclass) FROM pg_trigger WHERE NOT tgisinternal"
    ),
}


@asynccontextmanager
async def opened(url: str, codec: Codec | None = None) -> AsyncIterator[EventLog]:
    """Open a log and close it at the end."""
    log = await open_log(url, AttemptsProjection(), (EVENTS_CHAIN, PROJECTIONS_CHAIN), codec=codec)
    try:
        yield log
    finally:
        await log.aclose()


async def recorded_events(log: EventLog, after: int = 0) -> list[Recorded[ToolEvent]]:
    """Return every tenant's events."""
    return [recorded async for recorded in log.read_all(after)]


async def store_raw(log: EventLog, like: Recorded[ToolEvent], **columns: Any) -> int:
    """Put a record behind the last one of a stream, as another release might have, and return its position."""

    def work(connection: Connection) -> int:
        if connection.dialect.name == "sqlite":
            position = connection.execute(text("SELECT max(position) + 1 FROM tool_call_events")).scalar_one()
        else:
            position = connection.execute(text("SELECT nextval('tool_call_position')")).scalar_one()
        row = connection.execute(select(event_table).where(event_table.c.position == like.position)).one()._asdict()
        connection.execute(insert(event_table).values(row | {"position": position, "id": f"raw-{position}"} | columns))
        return int(position)

    return await log.store.transact(work)


async def tamper(log: EventLog, *statements: str) -> None:
    """Change tables as somebody with a database shell would: the triggers go first."""

    def work(connection: Connection) -> Sequence[int]:
        for drop in connection.exec_driver_sql(_TRIGGERS[connection.dialect.name]).scalars().all():
            connection.exec_driver_sql(drop)
        return [connection.execute(text(statement)).rowcount for statement in statements]

    await log.store.transact(work)
