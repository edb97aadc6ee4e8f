"""An append that has returned is committed, and one that breaks off has left nothing (DESIGN 8, 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sqlalchemy import Connection

from events import Append, EventLog, Executed, LogUnavailable
from events.postgres import PostgresDurability, PostgresStore
from events.sqlite import SqliteStore
from projections import verify
from projections.rows import read_attempt
from tests.events.appends import follow, proposed
from tests.logs import opened, recorded_events

__all__ = ()

pytestmark = pytest.mark.anyio

# Somebody's own trigger, or a disk that is full: the events of executed calls cannot be written.
BROKEN = {
    "sqlite": (
        "CREATE TRIGGER broken BEFORE INSERT ON tool_call_events WHEN new.type = 'executed'"
        " BEGIN SELECT RAISE(ABORT, 'broken'); END",
    ),
    "postgresql": (
        "CREATE FUNCTION break_off() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'broken'; END $$",
        "CREATE TRIGGER broken BEFORE INSERT ON tool_call_events FOR EACH ROW WHEN (new.type = 'executed')"
        " EXECUTE FUNCTION break_off()",
    ),
}
MENDED = {"sqlite": ("DROP TRIGGER broken",), "postgresql": ("DROP TRIGGER broken ON tool_call_events",)}


async def run(log: EventLog, statements: Sequence[str]) -> None:
    def work(connection: Connection) -> None:
        for statement in statements:
            connection.exec_driver_sql(statement)

    await log.store.transact(work)


async def test_commits_are_synced_to_disk(database_url: str) -> None:
    async with opened(database_url) as log:
        assert isinstance(log.store, SqliteStore | PostgresStore)
        settings = await log.store.durability()
    if isinstance(settings, PostgresDurability):
        assert (settings.fsync, settings.synchronous_commit) == ("on", "on")
    else:
        assert (settings.journal_mode, settings.synchronous) == ("wal", "full")


async def test_what_is_acknowledged_can_be_read_by_others(database_url: str) -> None:
    async with opened(database_url) as log, opened(database_url) as other:
        first = proposed("c1")
        opening = await log.append(first.key, [first], 0, "u")
        assert await recorded_events(other) == opening
        closing = await log.append(first.key, [follow(Executed, first, result=1)], 1, "u")
        assert await recorded_events(other) == [*opening, *closing]


async def test_an_append_that_breaks_off_leaves_neither_event_nor_row(log: EventLog) -> None:
    first, second = proposed("c1"), proposed("c2")
    await log.append(first.key, [first], 0, "u")
    before = await recorded_events(log)
    await run(log, BROKEN[log.store.dialect])
    result = follow(Executed, first, result=1)
    with pytest.raises(LogUnavailable, match="broken"):
        await log.append(first.key, [result], 1, "u")
    with pytest.raises(LogUnavailable, match="broken"):
        await log.append(second.key, [second, follow(Executed, second, result=2)], 0, "u")
    third = proposed("c3")
    both = ((third, 0), (result, 1))
    with pytest.raises(LogUnavailable, match="broken"):
        await log.append_many([Append(key=e.key, events=(e,), expected_version=v, user_id="u") for e, v in both])
    assert await recorded_events(log) == before
    row = await read_attempt(log, first.key, "u")
    assert row is not None
    assert (row.status, row.version) == ("proposed", 1)
    assert [await read_attempt(log, f"m:{name}", "u") for name in ("c2", "c3")] == [None, None]
    await run(log, MENDED[log.store.dialect])
    await log.append(first.key, [result], 1, "u")
    assert (await verify(log)).ok
