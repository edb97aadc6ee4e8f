"""The Postgres store when connections, answers or the whole server are lost, and when its callers leave."""

from __future__ import annotations

from collections.abc import Iterator

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
import sqlalchemy as sa

from engine.migration import CHAINS
from events.errors import LogUnavailable
from events.postgres import PostgresStore, migrate_postgres
from events.schema import leases
from events.store import Appended, StreamAppend
from events.types import Executed
from tests.events.appends import append, follow, proposed
from tests.events.postgres_stores import one, opened, positions, row_of
from tests.postgres_proxy import postgres_proxy
from tests.postgres_server import PASSWORD, PostgresServer, postgres_server

pytestmark = [pytest.mark.postgres, pytest.mark.anyio]

KILL = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


async def test_connections_that_were_killed_are_replaced(postgres: PostgresServer, postgres_url: str) -> None:
    first = proposed("c1")
    async with opened(postgres_url) as store:
        await one(store, append(first))
        await store.read(sa.text("SELECT 1"))
        await anyio.to_thread.run_sync(postgres.execute_on, postgres_url, KILL)
        assert isinstance(await one(store, append(follow(Executed, first), after=1)), Appended)
        assert await store.head() == 2
        await anyio.to_thread.run_sync(postgres.execute_on, postgres_url, KILL)
        assert await store.write([sa.delete(leases)]) == [0]


async def test_an_append_whose_answer_was_lost_is_appended_once(postgres_url: str) -> None:
    first = proposed("c1")
    with postgres_proxy(postgres_url) as proxy:
        async with opened(proxy.url) as store:
            await one(store, append(first))
            await one(store, append(proposed("warm")))
            end = follow(Executed, first, result="needle")
            proxy.lose_answer_to("needle")
            told = await one(store, append(end, after=1))
            assert proxy.lost == 1
            assert told.positions == (3,)
            assert await positions(store) == [1, 2, 3]
            assert (await row_of(store, first)).version == 2


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


async def test_a_server_that_dies_and_comes_back(own_server: PostgresServer) -> None:
    """Kill -9 of the whole server: what was acknowledged is there, what was not is an error, and life goes on."""
    url = await anyio.to_thread.run_sync(own_server.create_database)
    await migrate_postgres(url, CHAINS)
    first = proposed("c1")
    async with opened(url) as store:
        await one(store, append(first))
        await store.head()
        await anyio.to_thread.run_sync(own_server.kill)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fails, store, append(follow(Executed, first), after=1))
            with pytest.raises(LogUnavailable, match="no connection") as error:
                await store.head()
        assert PASSWORD not in str(error.value)
        await anyio.to_thread.run_sync(own_server.start)
        assert isinstance(await one(store, append(follow(Executed, first), after=1)), Appended)
        assert await store.head() >= 2
        assert len(await positions(store)) == 2


async def fails(store: PostgresStore, unit: StreamAppend) -> None:
    with pytest.raises(LogUnavailable, match="check that it runs"):
        await store.commit([(unit,)])


async def test_a_cancelled_commit_finishes_first(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        calls = [proposed(f"c{number}") for number in range(10)]
        for call in calls:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(store.commit, [(append(call),)])
                await anyio.lowlevel.checkpoint()
                await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
        assert len(await positions(store)) == 10
        with anyio.CancelScope() as scope:
            scope.cancel()
            await store.commit([(append(proposed("never")),)])
        assert len(await positions(store)) == 10


async def test_cancelled_reads_cost_no_connection(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        for number in range(40):
            with anyio.move_on_after(0.001 * (number % 20)):
                async with anyio.create_task_group() as tasks:
                    for _ in range(4):
                        tasks.start_soon(store.read, sa.text("SELECT pg_sleep(0.05)"))
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(store.read, sa.text("SELECT pg_sleep(0.05)"))
