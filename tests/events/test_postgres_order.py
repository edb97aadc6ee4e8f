"""Readers of the Postgres log: positions in order, none missed, and woken in time."""

from __future__ import annotations

import random
from queue import SimpleQueue

import anyio
import anyio.to_thread
import pytest
import sqlalchemy as sa

from events.postgres import PostgresStore
from events.postgres_wake import CHANNEL
from events.schema import events
from events.store import Appended, Refusal, StreamAppend
from events.types import Executed, Failed
from projections.schema import attempts
from tests import logs
from tests.events.appends import append, follow, proposed
from tests.events.postgres_stores import one, opened, positions, slow_writer
from tests.postgres_server import PostgresServer

pytestmark = [pytest.mark.postgres, pytest.mark.anyio]


async def read_after(store: PostgresStore, after: int) -> tuple[list[int], int]:
    """Read as a follower does: the head first, then the rows up to it."""
    head = await store.head()
    statement = sa.select(events.c.position).where(events.c.position > after, events.c.position <= head)
    return [row[0] for row in await store.read(statement.order_by(events.c.position))], head


async def test_case_journal_05_a_follower_waits_for_the_event_that_commits_late(postgres_url: str) -> None:
    async with opened(postgres_url) as store, slow_writer(postgres_url) as slow:
        await one(store, append(proposed("before")))
        await slow.begin(append(proposed("late")))
        assert (await one(store, append(proposed("early")))).positions == (3,)
        seen, cursor = await read_after(store, 0)
        assert (seen, cursor) == ([1], 1)
        await slow.end("COMMIT")
        seen, cursor = await read_after(store, cursor)
        assert (seen, cursor) == ([2, 3], 3)


async def test_case_journal_05_a_hole_stops_no_follower(postgres_url: str) -> None:
    async with opened(postgres_url) as store, slow_writer(postgres_url) as slow:
        await slow.begin(append(proposed("late")))
        await one(store, append(proposed("early")))
        await slow.end("ROLLBACK")
        assert await read_after(store, 0) == ([2], 2)
        await one(store, append(proposed("late")))
        assert await read_after(store, 2) == ([3], 3)


async def test_readers_and_subscriptions_wait_for_the_event_that_commits_late(postgres_url: str) -> None:
    async with logs.opened(postgres_url) as log, slow_writer(postgres_url) as slow:
        first, third = proposed("before"), proposed("early")
        await log.append(first.key, [first], 0, "u")
        await slow.begin(append(proposed("late")))
        await log.append(third.key, [third], 0, "u")
        subscription = log.subscribe(None)
        assert (await anext(subscription)).position == 1
        with anyio.move_on_after(0.3):
            hasty = await anext(subscription)
            pytest.fail(f"position {hasty.position} was handed out before a lower one")
        assert [entry.position for entry in await logs.recorded_events(log)] == [1]
        await slow.end("COMMIT")
        with anyio.fail_after(10):
            assert [(await anext(subscription)).position for _ in range(2)] == [2, 3]
        assert [entry.position for entry in await logs.recorded_events(log)] == [1, 2, 3]


async def test_a_foreign_transaction_stops_no_follower(postgres_url: str) -> None:
    async with opened(postgres_url) as store, slow_writer(postgres_url) as foreign:
        await foreign.call(foreign.connection.execute, "BEGIN; SELECT pg_advisory_xact_lock_shared(5), txid_current()")
        await one(store, append(proposed("c1")))
        assert await store.head() == 1


async def test_refused_appends_use_up_no_position(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        first = proposed("c1")
        await one(store, append(first))
        for _ in range(3):
            assert isinstance(await one(store, append(proposed("c1"))), Refusal)
            assert isinstance(await one(store, append(follow(Executed, first), after=5)), Refusal)
        assert await store.head() == 1


@pytest.mark.parametrize("seed", range(2))
async def test_rival_writers_and_a_follower(postgres_url: str, seed: int) -> None:
    """Several writers race for the same streams: each stream begins and ends once, and a follower misses nothing."""
    followed: list[int] = []
    won: list[int] = []
    writing = 4

    async def write(number: int) -> None:
        nonlocal writing
        choices = random.Random(f"{seed}.{number}")
        async with opened(postgres_url) as store:
            for _ in range(25):
                calls = [proposed(str(name)) for name in choices.sample(range(60), 8)]
                await took(store, [append(call) for call in calls])
                await took(store, [append(follow(Executed, call, result=number), after=1) for call in calls])
        writing -= 1

    async def took(store: PostgresStore, appends: list[StreamAppend]) -> None:
        for outcome in await store.commit([(each,) for each in appends]):
            assert isinstance(outcome, tuple)
            if isinstance(outcome[0], Appended):
                won.extend(outcome[0].positions)

    async def tail() -> None:
        async with opened(postgres_url) as store:
            cursor = 0
            while True:
                over = not writing
                seen, cursor = await read_after(store, cursor)
                followed.extend(seen)
                if over and not seen:
                    return

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tail)
        for number in range(4):
            tasks.start_soon(write, number)
    async with opened(postgres_url) as store:
        assert followed == await positions(store) == sorted(won)
        rows = await store.read(sa.select(attempts.c.status, attempts.c.version))
        assert [tuple(row) for row in rows] == [("executed", 2)] * 60


async def test_a_reader_is_woken_by_another_process(postgres_url: str) -> None:
    async with opened(postgres_url) as writer, opened(postgres_url) as reader:
        await reader.wait(0, 0.01)
        woken = anyio.Event()

        async def wait() -> None:
            await reader.wait(0, 30)
            woken.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            await one(writer, append(proposed("c1")))
            with anyio.fail_after(5):
                await woken.wait()


async def test_waiting_ends_in_time_and_at_once_where_there_is_news(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        with anyio.fail_after(5):
            await store.wait(0, 0.05)
        await one(store, append(proposed("c1")))
        with anyio.fail_after(5):
            await store.wait(0, 60)


async def test_a_reader_is_woken_though_its_listener_was_killed(postgres: PostgresServer, postgres_url: str) -> None:
    async with opened(postgres_url) as writer, opened(postgres_url) as reader:
        await reader.wait(0, 0.05)
        await anyio.to_thread.run_sync(
            postgres.execute_on,
            postgres_url,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            f" WHERE query LIKE '%{CHANNEL}%' AND pid <> pg_backend_pid()",
        )
        await one(writer, append(proposed("c1")))
        with anyio.fail_after(5):
            await reader.wait(0, 60)
        await one(writer, append(proposed("c2")))
        with anyio.fail_after(5):
            await reader.wait(1, 60)


@pytest.mark.parametrize("filling", ["x", "ü"])
@pytest.mark.parametrize("size", [7_999, 8_000, 200_000])
async def test_case_journal_07_large_events_commit_and_wake(
    postgres: PostgresServer, postgres_url: str, size: int, filling: str
) -> None:
    told: SimpleQueue[str] = SimpleQueue()
    async with opened(postgres_url) as store, slow_writer(postgres_url) as listener:
        await listener.call(listener.connection.add_listener, CHANNEL, lambda *said: told.put(said[-1]))
        first = proposed("c1")
        await one(store, append(first))
        end = append(follow(Executed, first, result=filling * (size // len(filling.encode()))), after=1)
        assert len(end.events[0].data.encode()) >= size
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(store.wait, 1, 60)
                await one(store, end)
        assert await anyio.to_thread.run_sync(told.get, True, 5) == "1"
        assert await anyio.to_thread.run_sync(told.get, True, 5) == "2"


async def test_case_journal_06_waiters_hold_no_connection(postgres_url: str) -> None:
    async with opened(postgres_url) as store:
        first = proposed("c1")
        await one(store, append(first))
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(store.wait, 2, 60)
            await anyio.wait_all_tasks_blocked()
            with anyio.fail_after(30):
                await one(store, append(follow(Failed, first, kind="exception", message="m"), after=1))
                assert len(await store.read(sa.select(attempts.c.status))) == 1
            busy = await store.read(
                sa.text(
                    "SELECT count(*) FILTER (WHERE state = 'idle in transaction'), count(*) FROM pg_stat_activity"
                    " WHERE datname = current_database()"
                )
            )
            assert busy[0][0] == 0
            assert busy[0][1] <= 7
            tasks.cancel_scope.cancel()
