"""``rebuild`` makes the state table anew from the log, whatever goes on or wrong meanwhile."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import anyio.to_thread
import pytest
from sqlalchemy import Connection, text

from events import Confirmed, Conflict, EventLog, Executed, LogUnavailable, SchemaMismatch
from projections import Report, rebuild, verify
from projections.swap import SHADOW
from tests.events.appends import follow, proposed
from tests.lives import live, live_all
from tests.logs import opened, tamper

__all__ = ()

pytestmark = pytest.mark.anyio

SCHEMA = {
    "sqlite": "SELECT type, name, tbl_name FROM sqlite_master ORDER BY 1, 2, 3",
    "postgresql": (
        "SELECT 'index', indexname, regexp_replace(indexdef, '^.* USING', '') FROM pg_indexes"
        " WHERE schemaname = 'public'"
        " UNION ALL SELECT 'constraint', conname, conrelid::regclass::text FROM pg_constraint WHERE contype <> 'n'"
        " UNION ALL SELECT 'trigger', tgname, tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal"
        " UNION ALL SELECT 'grant', relname, coalesce(relacl::text, '') FROM pg_class WHERE relkind IN ('r', 'v')"
        " AND relnamespace = 'public'::regnamespace ORDER BY 1, 2, 3"
    ),
}


async def rows(log: EventLog) -> list[tuple[Any, ...]]:
    found = await log.store.read(text("SELECT * FROM tool_call_attempts ORDER BY stream"))
    return [tuple(row) for row in found]


async def schema(log: EventLog) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in await log.store.read(text(SCHEMA[log.store.dialect]))]


async def has_shadow(log: EventLog) -> bool:
    return any(SHADOW in str(entry) for entry in await schema(log))


async def test_every_row_comes_back_column_by_column(log: EventLog) -> None:
    calls = await live_all(log)
    before = await rows(log)
    await tamper(
        log,
        "DELETE FROM tool_call_attempts WHERE stream < 5",
        "UPDATE tool_call_attempts SET worker = 'x', status = 'failed', arguments = NULL",
    )
    assert not (await verify(log)).ok
    report = await rebuild(log)
    assert (report.ok, report.streams, report.head) == (True, calls, await log.head())
    assert await rows(log) == before
    assert (await verify(log)).ok
    assert await rebuild(log) == report


async def test_an_empty_log_gives_an_empty_table(log: EventLog) -> None:
    assert await rebuild(log) == Report(ok=True)
    assert await rows(log) == []


async def test_the_table_keeps_its_indexes_constraints_triggers_and_grants(log: EventLog) -> None:
    await live_all(log)
    extra = ["CREATE INDEX somebody_s_own ON tool_call_attempts (tool_name, worker)"]
    if log.store.dialect == "postgresql":
        extra += ["GRANT SELECT ON tool_call_attempts TO PUBLIC"]
        extra += ["CREATE TRIGGER t BEFORE TRUNCATE ON tool_call_attempts EXECUTE FUNCTION calljournal_append_only()"]
    else:
        extra += ["CREATE TRIGGER t AFTER DELETE ON tool_call_attempts BEGIN SELECT RAISE(ABORT, 'kept'); END"]
        extra += ["CREATE VIEW open_calls AS SELECT key FROM tool_call_attempts WHERE status = 'proposed'"]
    await log.store.write([text(statement) for statement in extra])
    before = await schema(log)
    assert (await rebuild(log)).ok
    assert await schema(log) == before
    await live_all(log, "n")
    assert (await rebuild(log)).ok
    assert await schema(log) == before
    assert (await verify(log)).ok


async def test_appends_go_on_meanwhile(log: EventLog) -> None:
    await live_all(log)
    done = anyio.Event()
    appended = 0

    async def keep_appending(number: int) -> None:
        nonlocal appended
        while not done.is_set():
            appended += 1
            first = proposed(f"c{appended}", message_id=f"n{number}")
            await live(log, first, [follow(Executed, first, result=appended), follow(Confirmed, first)])

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(keep_appending, number)
        for _ in range(5):
            assert (await rebuild(log)).ok
            assert (await verify(log)).problems == ()
        done.set()
    assert appended > 8
    assert (await verify(log)).problems == ()


class StopError(Exception):
    """What interrupts a rebuild in a test."""


async def test_interrupted_the_live_table_is_untouched_and_the_next_run_goes_on(log: EventLog) -> None:
    await live_all(log)
    await tamper(log, "UPDATE tool_call_attempts SET worker = 'x'")
    damaged = await rows(log)

    def stop(done: int, total: int) -> None:
        if done == total:
            raise StopError

    with pytest.raises(StopError):
        await rebuild(log, progress=stop)
    assert await rows(log) == damaged
    assert await has_shadow(log)
    await live_all(log, "n")
    steps: list[int] = []
    report = await rebuild(log, progress=lambda done, total: steps.append(done))
    assert report.ok
    assert len(steps) == 1, "what the first run had filled was filled again"
    assert not await has_shadow(log)
    assert (await verify(log)).problems == ()


async def test_a_log_that_cannot_be_folded_is_reported_and_nothing_is_swapped(log: EventLog) -> None:
    await live_all(log)
    await tamper(log, "UPDATE tool_call_events SET data = '{}' WHERE position = 5")
    before = await rows(log)
    report = await rebuild(log)
    assert not report.ok
    assert [problem.position for problem in report.problems] == [5]
    assert await rows(log) == before
    assert not await has_shadow(log)


async def test_a_table_of_a_newer_release_is_left_alone(log: EventLog) -> None:
    await live_all(log)
    await log.store.write([text("ALTER TABLE tool_call_attempts ADD COLUMN mood text")])
    with pytest.raises(SchemaMismatch, match="mood"):
        await rebuild(log)
    assert not await has_shadow(log)


async def test_two_rebuilds_at_once_do_no_harm(log: EventLog) -> None:
    await live_all(log)
    before = await rows(log)
    outcomes: list[str] = []

    async def run() -> None:
        try:
            outcomes.append("ok" if (await rebuild(log)).ok else "problems")
        except Conflict:
            outcomes.append("second")

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(run)
    assert "ok" in outcomes
    assert set(outcomes) <= {"ok", "second"}
    assert await rows(log) == before
    assert not await has_shadow(log)


@pytest.mark.soak
@pytest.mark.postgres
async def test_whoever_reads_the_table_for_long_holds_up_the_swap_but_no_append(postgres_url: str) -> None:
    async with opened(postgres_url) as log, opened(postgres_url) as other:
        await live_all(log)
        held, released = threading.Event(), threading.Event()

        def read_for_long(connection: Connection) -> None:
            connection.execute(text("SELECT * FROM tool_call_attempts"))
            held.set()
            while not released.is_set():
                connection.execute(text("SELECT pg_sleep(0.05)"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(other.store.transact, read_for_long)
            await anyio.to_thread.run_sync(held.wait)
            await rebuild_while_appending(log)
            released.set()
        assert (await rebuild(log)).ok
        assert (await verify(log)).problems == ()


async def failing_rebuild(log: EventLog) -> None:
    with pytest.raises(LogUnavailable):
        await rebuild(log)


async def rebuild_while_appending(log: EventLog) -> None:
    done = anyio.Event()

    async def keep_appending() -> None:
        turn = 0
        while not done.is_set():
            turn += 1
            first = proposed(f"c{turn}", message_id="n")
            await live(log, first, [follow(Executed, first, result=turn)])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_appending)
        await failing_rebuild(log)
        done.set()
