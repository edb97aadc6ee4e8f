"""Group commit: what goes together, who leads, and that no cancellation loses, doubles or halves an append."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from events import EventLog, Executed, LogUnavailable, Proposed, Recorded, Refused, ToolEvent
from events.null import NullStore
from events.store import Outcome, Unit, Verdict
from events.writer import Writer
from projections import verify
from tests.events.appends import append, follow, proposed
from tests.logs import opened, recorded_events

__all__ = ()

pytestmark = pytest.mark.anyio

NATIVE = pytest.mark.parametrize(
    "anyio_backend", ["asyncio", pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop")]
)
"""Plain ``task.cancel()``, which knows no shields, exists on asyncio only."""


class Gate(NullStore):
    """A store whose commits wait until they are let through, and which remembers them."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.batches: list[list[str]] = []
        self.error = error
        self.turns = 0
        self.open = anyio.Event()

    async def commit(self, units: Sequence[Unit]) -> Sequence[Outcome]:
        self.batches.append([entry.key for unit in units for entry in unit])
        await self.open.wait()
        for _ in range(self.turns):
            await anyio.lowlevel.checkpoint()
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        return await super().commit(units)


def unit(name: str) -> Unit:
    return (append(proposed(name)),)


async def settled(turns: int = 20) -> None:
    for _ in range(turns):
        await anyio.lowlevel.checkpoint()


async def test_an_idle_writer_commits_at_once() -> None:
    store = Gate()
    writer = Writer(store)
    store.open.set()
    await writer.submit(unit("a"))
    await writer.submit(unit("b"))
    assert store.batches == [["m:a"], ["m:b"]]


async def test_what_waits_together_is_committed_together() -> None:
    store = Gate()
    writer = Writer(store)
    async with anyio.create_task_group() as tasks:
        for name in "abcd":
            tasks.start_soon(writer.submit, unit(name))
            await settled()
        assert writer.statistics().waiting == 3
        store.open.set()
    assert store.batches == [["m:a"], ["m:b", "m:c", "m:d"]]
    assert writer.statistics().largest_batch == 3


async def test_callers_that_append_again_at_once_stay_together() -> None:
    store = Gate()
    store.open.set()
    writer = Writer(store)

    async def caller(name: str) -> None:
        for number in range(5):
            await writer.submit(unit(f"{name}{number}"))

    async with anyio.create_task_group() as tasks:
        for name in "abcdefgh":
            tasks.start_soon(caller, name)
    assert len(store.batches) <= 7


async def test_one_stream_is_never_twice_in_a_batch_and_keeps_its_order() -> None:
    store = Gate()
    writer = Writer(store)
    async with anyio.create_task_group() as tasks:
        for name in ("first", "a", "b", "a", "c"):
            tasks.start_soon(writer.submit, unit(name))
            await settled()
        store.open.set()
    assert store.batches == [["m:first"], ["m:a", "m:b"], ["m:a", "m:c"]]


async def test_a_unit_of_several_streams_stays_alone() -> None:
    store = Gate()
    writer = Writer(store)
    async with anyio.create_task_group() as tasks:
        for wanted in (unit("first"), unit("a"), (*unit("b"), *unit("c")), unit("d")):
            tasks.start_soon(writer.submit, wanted)
            await settled()
        store.open.set()
    assert store.batches == [["m:first"], ["m:a"], ["m:b", "m:c"], ["m:d"]]


async def test_producers_wait_where_the_queue_is_full() -> None:
    store = Gate()
    writer = Writer(store, limit=3)
    done: list[Verdict] = []

    async def submit(name: str) -> None:
        done.append(await writer.submit(unit(name)))

    async with anyio.create_task_group() as tasks:
        for number in range(12):
            tasks.start_soon(submit, str(number))
        await settled()
        assert writer.statistics().waiting == 3
        store.open.set()
    assert len(done) == 12
    assert max(map(len, store.batches)) <= 3


async def test_a_failed_batch_fails_each_of_its_units_and_no_other() -> None:
    store = Gate(LogUnavailable("the disk is full"))
    writer = Writer(store)
    failed: list[str] = []

    async def submit(name: str) -> None:
        try:
            await writer.submit(unit(name))
        except LogUnavailable as error:
            failed.append(f"{name}: {error}")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(submit, "a")
        await settled()
        tasks.start_soon(submit, "b")
        tasks.start_soon(submit, "c")
        await settled()
        store.open.set()
    assert failed == ["a: the disk is full"]


async def test_a_unit_that_cannot_be_stored_says_so_alone() -> None:
    class Picky(NullStore):
        async def commit(self, units: Sequence[Unit]) -> Sequence[Outcome]:
            outcomes = await super().commit(units)
            return [
                Refused("too long") if wanted[0].key == "m:b" else outcome
                for wanted, outcome in zip(units, outcomes, strict=True)
            ]

    writer = Writer(Picky())
    await writer.submit(unit("a"))
    with pytest.raises(Refused, match="too long"):
        await writer.submit(unit("b"))


async def test_a_bug_in_a_store_stops_nobody_else() -> None:
    store = Gate(ZeroDivisionError("a bug"))
    store.open.set()
    writer = Writer(store)
    with pytest.raises(ZeroDivisionError):
        await writer.submit(unit("a"))
    await writer.submit(unit("b"))


async def test_a_leader_cancelled_at_any_point_hands_the_lead_on() -> None:
    for turns in range(16):
        store = Gate()
        store.turns = 4
        writer = Writer(store)
        done: list[str] = []

        async def submit(name: str, writer: Writer = writer, done: list[str] = done) -> None:
            await writer.submit(unit(name))
            done.append(name)

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                with anyio.CancelScope() as doomed:
                    async with anyio.create_task_group() as leaders:
                        leaders.start_soon(submit, "leader")
                        await settled(3)
                        leaders.start_soon(submit, "next leader")
                        await settled(3)
                        for name in "abc":
                            tasks.start_soon(submit, name)
                        await settled(3)
                        store.open.set()
                        await settled(turns)
                        doomed.cancel()
            await submit("last")
        assert sorted(set(done) - {"leader", "next leader"}) == ["a", "b", "c", "last"]
        assert sorted(key for batch in store.batches for key in batch)[:4] == ["m:a", "m:b", "m:c", "m:last"]


@NATIVE
async def test_a_leader_cancelled_by_its_task_hands_the_lead_on() -> None:
    for turns in range(16):
        store = Gate()
        store.turns = 4
        writer = Writer(store)
        with anyio.fail_after(10):
            leader = asyncio.create_task(writer.submit(unit("leader")))
            await settled(3)
            successor = asyncio.create_task(writer.submit(unit("next leader")))
            await settled(3)
            others = [asyncio.create_task(writer.submit(unit(name))) for name in "abc"]
            await settled(3)
            store.open.set()
            await settled(turns)
            for _ in range(3):
                leader.cancel()
                successor.cancel()
                await settled(1)
            await asyncio.wait((leader, successor, *others))
            assert all(task.exception() is None for task in others)
            assert all(task.cancelled() or task.exception() is None for task in (leader, successor))
        assert store.batches == [["m:leader"], ["m:next leader", "m:a", "m:b", "m:c"]]


@NATIVE
async def test_a_timeout_of_the_loops_own_is_a_timeout_and_the_append_is_there() -> None:
    store = Gate()
    writer = Writer(store)
    asyncio.get_running_loop().call_later(0.02, store.open.set)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await writer.submit(unit("a"))
    await settled()
    assert store.open.is_set()
    assert store.batches == [["m:a"]]


async def storm(log: EventLog, run: Callable[[EventLog, Proposed, random.Random], Any]) -> None:
    """Append many calls, most of them cancelled somewhere, some resent; then everything must be whole and once."""
    chance = random.Random(11)
    begun: list[Proposed] = []
    with anyio.fail_after(60):
        for round_ in range(4):
            async with anyio.create_task_group() as tasks:
                for number in range(60):
                    begun.append(proposed(f"c{round_}/{number}"))
                    tasks.start_soon(run, log, begun[-1], chance)
            # The writer is alive after each storm.
            begun.append(proposed(f"after {round_}"))
            await log.append(begun[-1].key, [begun[-1], follow(Executed, begun[-1])], 0, "u")
    streams: dict[str, list[Recorded[ToolEvent]]] = {}
    for entry in await recorded_events(log):
        streams.setdefault(entry.key, []).append(entry)
    assert all([entry.version for entry in entries] == [1, 2] for entries in streams.values())
    assert {entries[0].event.id for entries in streams.values()} <= {first.id for first in begun}
    assert (await verify(log)).ok
    assert log.statistics().writer.waiting == 0


async def append_call(log: EventLog, first: Proposed) -> None:
    await log.append(first.key, [first, follow(Executed, first, result=1)], 0, "u")


async def test_a_storm_of_scopes_that_end(tmp_path: Path) -> None:
    async def run(log: EventLog, first: Proposed, chance: random.Random) -> None:
        with anyio.move_on_after(chance.random() * 0.02 if chance.random() < 0.7 else 60):
            await append_call(log, first)

    async with opened(f"sqlite:///{tmp_path}/journal.db") as log:
        await storm(log, run)


@NATIVE
async def test_a_storm_of_cancelled_tasks(tmp_path: Path) -> None:
    outcomes: list[bool] = []

    async def run(log: EventLog, first: Proposed, chance: random.Random) -> None:
        task = asyncio.create_task(append_call(log, first))
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(chance.random() * 0.01)
            task.cancel()
        await asyncio.wait((task,))
        assert task.cancelled() or task.exception() is None
        outcomes.append(task.cancelled())

    async with opened(f"sqlite:///{tmp_path}/journal.db") as log:
        await storm(log, run)
    assert True in outcomes
    assert False in outcomes


@NATIVE
async def test_a_storm_of_timeouts_and_resends(tmp_path: Path) -> None:
    async def run(log: EventLog, first: Proposed, chance: random.Random) -> None:
        outcome = follow(Executed, first, result=1)
        while True:
            try:
                async with asyncio.timeout(0.001 + chance.random() * 0.05):
                    records = await log.append(first.key, [first, outcome], 0, "u")
            except TimeoutError:
                continue
            assert [entry.version for entry in records] == [1, 2]
            return

    async with opened(f"sqlite:///{tmp_path}/journal.db") as log:
        await storm(log, run)


@NATIVE
async def test_other_work_of_the_store_is_not_disturbed_by_a_cancelled_neighbour(tmp_path: Path) -> None:
    """A cancelled write must not leave the connection to the next one in the middle of its transaction."""

    total = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 300000) SELECT sum(i) FROM n"
    loop = asyncio.get_running_loop()

    async with opened(f"sqlite:///{tmp_path}/journal.db") as log:
        for number in range(5):
            begun = asyncio.Event()

            def slowly(connection: Any, begun: asyncio.Event = begun) -> int:
                loop.call_soon_threadsafe(begun.set)
                return int(connection.exec_driver_sql(total).scalar())

            task = asyncio.create_task(log.store.transact(slowly))
            await begun.wait()
            task.cancel()
            await append_call(log, proposed(str(number)))
            await asyncio.wait((task,))
        assert (await verify(log)).streams == 5
