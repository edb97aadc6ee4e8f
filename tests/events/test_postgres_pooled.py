"""The Postgres store behind a pooler in transaction mode, where no two transactions have the same server connection."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import anyio.to_thread
import asyncpg
import pytest
import sqlalchemy as sa

from engine.migration import CHAINS
from events.postgres import migrate_postgres
from events.schema import leases
from events.store import Appended
from events.types import Executed
from projections.schema import attempts
from tests.events.appends import append, follow, proposed
from tests.events.postgres_stores import entry, one, opened, positions, slow_writer
from tests.postgres_pooler import find_pgbouncer, pgbouncer, stub_pooler
from tests.postgres_server import PostgresServer

pytestmark = [pytest.mark.postgres, pytest.mark.anyio]

POOLERS = {"stub": stub_pooler} | ({"pgbouncer": pgbouncer} if find_pgbouncer() else {})


@pytest.fixture(params=POOLERS)
def pooler_url(request: pytest.FixtureRequest, postgres_url: str) -> Iterator[str]:
    with POOLERS[request.param](postgres_url) as url:
        yield url


async def test_a_pooler_is_recognised_and_named(pooler_url: str) -> None:
    async with opened(pooler_url) as store:
        await store.wait(0, 0.01)
        assert "pooled" in repr(store)


async def test_the_url_may_say_that_there_is_a_pooler(postgres_url: str) -> None:
    async with opened(f"{postgres_url}?pooled=1") as store:
        assert "pooled" in repr(store)
        assert isinstance(await one(store, append(proposed("c1"))), Appended)
        assert await store.head() == 1
    async with opened(postgres_url) as store:
        assert "pooled" not in repr(store)


async def test_commits_through_it_wait_for_the_disk_whatever_the_database_says(
    postgres: PostgresServer, postgres_url: str
) -> None:
    """A pooler keeps no setting of the session: the append itself must see to it."""
    name = postgres_url.rpartition("/")[2]
    await anyio.to_thread.run_sync(
        postgres.execute_on,
        postgres_url,
        f'ALTER DATABASE "{name}" SET synchronous_commit = off',
        "CREATE TABLE seen (setting text)",
        "CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$",
        "CREATE CONSTRAINT TRIGGER look AFTER INSERT ON tool_call_events DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION look()",
    )
    async with opened(f"{postgres_url}?pooled=1") as store:
        await one(store, append(proposed("c1")))
        assert [row[0] for row in await store.read(sa.text("SELECT setting FROM seen"))] == ["on"]


async def test_this_pooler_does_break_who_does_not_mind_it(postgres_url: str) -> None:
    with stub_pooler(postgres_url) as url:
        async with slow_writer(url) as naive:
            assert await naive.call(naive.connection.fetchval, "SELECT $1::int", 1) == 1
            with pytest.raises(asyncpg.PostgresError, match="prepared statement"):
                await naive.call(naive.connection.fetchval, "SELECT $1::int", 1)


async def test_case_journal_03_two_processes_append_and_read_through_it(pooler_url: str) -> None:
    calls = [[proposed(f"{number}.{call}") for call in range(25)] for number in range(2)]

    async def process(number: int) -> None:
        async with opened(pooler_url) as store:
            for call in calls[number]:
                assert isinstance(await one(store, append(call)), Appended)
                assert await store.head() > 0
                end = follow(Executed, call, result=call.call_id)
                outcomes = await store.commit([(append(end, after=1),), (append(proposed("everybody's")),)])
                assert isinstance(entry(outcomes[0]), Appended)
                assert await store.write([sa.delete(leases).where(leases.c.worker == call.call_id)]) == [0]
                await store.read(sa.select(attempts.c.status).where(attempts.c.key == call.key))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(process, 0)
        tasks.start_soon(process, 1)
    async with opened(pooler_url) as store:
        assert len(await positions(store)) == 101
        statuses = await store.read(sa.select(attempts.c.status, sa.func.count()).group_by(attempts.c.status))
        assert dict(map(tuple, statuses)) == {"executed": 50, "proposed": 1}


async def test_case_journal_03_a_reader_behind_it_is_woken(pooler_url: str) -> None:
    async with opened(pooler_url) as writer, opened(pooler_url) as reader:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(reader.wait, 0, 60)
                await one(writer, append(proposed("c1")))


async def test_a_database_is_migrated_through_it(empty_postgres_url: str) -> None:
    with stub_pooler(empty_postgres_url) as url:
        applied = await migrate_postgres(url, CHAINS)
        assert [f"{chain.package}:{chain.head}" in applied for chain in CHAINS] == [True] * len(CHAINS)
        assert await migrate_postgres(url, CHAINS) == []
