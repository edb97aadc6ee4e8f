"""Read models: each event counts once, whatever is raised, refused, cancelled, or run twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from sqlalchemy import Column, Integer, MetaData, Table, Text, delete, insert, select, update

from events import EventLog, Executed, Proposed, Recorded, ToolEvent
from projections import ProjectionStatistics, reset_projection, run_projection
from projections.schema import parked
from tests.events.appends import follow, proposed
from tests.lives import live
from tests.logs import recorded_events, store_raw, tamper

__all__ = ()

pytestmark = pytest.mark.anyio

metadata = MetaData()
counts = Table(
    "test_counts",
    metadata,
    Column("call_id", Text, primary_key=True),
    Column("seen", Integer, nullable=False),
)


class Counter:
    """Counts the events per call id; raises for one id, and for another gives what no database takes."""

    name = "test_counts"

    def __init__(self, poison: str = "") -> None:
        self.poison = poison

    def statements(self, recorded: Recorded[ToolEvent]) -> Sequence[Any]:
        """One more of this call."""
        name = recorded.event.call_id
        if name == self.poison:
            raise ValueError(f"{name} is not to my taste")
        if isinstance(recorded.event, Proposed):
            values = {"call_id": name, "seen": None if name == "unstorable" else 1}
            return [insert(counts).values(values)]
        return [update(counts).where(counts.c.call_id == name).values(seen=counts.c.seen + 1)]

    def reset(self) -> Sequence[Any]:
        """Empty the table."""
        return [delete(counts)]


@pytest.fixture
async def counted(log: EventLog) -> EventLog:
    """A log with the read model's table in its database."""
    await log.store.transact(metadata.create_all)
    return log


async def call(log: EventLog, *names: str) -> None:
    for name in names:
        first = proposed(name)
        await live(log, first, [follow(Executed, first, result=1)])


async def seen(log: EventLog) -> dict[str, int]:
    return {row[0]: row[1] for row in await log.store.read(select(counts))}


async def parked_positions(log: EventLog) -> list[tuple[int, str]]:
    statement = select(parked.c.position, parked.c.error).order_by(parked.c.position)
    return [(row[0], row[1]) for row in await log.store.read(statement)]


async def test_each_event_counts_once_over_several_runs(counted: EventLog) -> None:
    await call(counted, "a", "b")
    done = await run_projection(counted, Counter())
    assert (done.position, done.events, done.parked) == (await counted.head(), 4, 0)
    assert (await run_projection(counted, Counter())).events == 0
    await call(counted, "c")
    assert (await run_projection(counted, Counter())).events == 2
    assert await seen(counted) == {"a": 2, "b": 2, "c": 2}


async def test_a_poison_event_is_parked_with_the_reason_and_the_run_goes_on(counted: EventLog) -> None:
    await call(counted, "a", "bad", "unstorable", "z")
    done = await run_projection(counted, Counter("bad"))
    assert (done.events, done.parked) == (8, 3)
    assert await seen(counted) == {"a": 2, "z": 2}
    found = await parked_positions(counted)
    events = [e.position for e in await recorded_events(counted)]
    assert [position for position, _ in found] == [events[2], events[3], events[4]]
    assert "not to my taste" in found[0][1]
    assert "seen" in found[2][1]
    assert (await run_projection(counted, Counter("bad"))).events == 0


async def test_damaged_text_is_parked_and_unknown_kinds_are_passed_over(counted: EventLog) -> None:
    await call(counted, "a")
    entry = (await recorded_events(counted))[0]
    await store_raw(counted, entry, version=3, type="dreamt")
    await call(counted, "b")
    await tamper(counted, f"UPDATE tool_call_events SET data = '{{' WHERE position = {entry.position}")
    done = await run_projection(counted, Counter())
    assert (done.events, done.parked) == (5, 1)
    assert await seen(counted) == {"b": 2}
    assert [position for position, _ in await parked_positions(counted)] == [entry.position]


async def test_reset_makes_it_anew(counted: EventLog) -> None:
    await call(counted, "a", "bad")
    await run_projection(counted, Counter("bad"))
    await reset_projection(counted, Counter())
    assert await seen(counted) == {}
    assert (await run_projection(counted, Counter())).parked == 0
    assert await seen(counted) == {"a": 2, "bad": 2}
    assert await parked_positions(counted) == []


async def test_it_follows_what_is_appended(counted: EventLog) -> None:
    await call(counted, "a")
    caught_up, all_there = anyio.Event(), anyio.Event()

    def observe(done: ProjectionStatistics) -> None:
        if done.events == 2:
            caught_up.set()
        if done.events == 6:
            all_there.set()

    async def follow_it() -> None:
        await run_projection(counted, Counter(), follow=True, observe=observe)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow_it)
            await caught_up.wait()
            await call(counted, "b", "c")
            await all_there.wait()
            tasks.cancel_scope.cancel()
    assert await seen(counted) == {"a": 2, "b": 2, "c": 2}


async def test_several_runs_at_once_count_nothing_twice(counted: EventLog) -> None:
    for turn in range(5):
        await call(counted, *[f"c{turn}/{number}" for number in range(10)])
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(run_projection, counted, Counter())
    assert await seen(counted) == {f"c{turn}/{number}": 2 for turn in range(5) for number in range(10)}
    assert await parked_positions(counted) == []


async def test_runs_that_are_cancelled_again_and_again_count_nothing_twice(counted: EventLog) -> None:
    names = [f"c{number}" for number in range(30)]
    finished = anyio.Event()

    async def restless(turns: int) -> None:
        while not finished.is_set():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run_projection, counted, Counter())
                for _ in range(turns):
                    await anyio.sleep(0)
                tasks.cancel_scope.cancel()

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for turns in (3, 40, 200):
                tasks.start_soon(restless, turns)
            await call(counted, *names)
            finished.set()
    await run_projection(counted, Counter())
    assert await seen(counted) == dict.fromkeys(names, 2)
    assert await parked_positions(counted) == []
