"""Killed mid-load, or many at once: what was acknowledged is in the log, once, and a reader misses nothing."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import anyio
import anyio.to_thread
import pytest

from events import EventLog, Executed, Proposed
from projections import rebuild, verify
from projections.rows import read_attempt
from tests.crash.child import Child
from tests.events.appends import proposed
from tests.logs import opened, recorded_events, tamper
from tests.shape import ROOT

__all__ = ()

pytestmark = pytest.mark.anyio

WRITERS = 3


@contextmanager
def child(url: str, backend: str, name: str, calls: int = 1_000_000) -> Iterator[Child]:
    """Run a writer, which says the id of every event that was acknowledged."""
    process = Child("tests.crash.writer", url, backend, name, str(calls))
    try:
        process.get_ready()
        yield process
    finally:
        process.close()


async def assert_recorded_once(log: EventLog, acknowledged: list[str]) -> None:
    events = await recorded_events(log)
    counted = Counter(entry.event.id for entry in events)
    assert [name for name in acknowledged if counted[name] != 1] == []
    assert set(counted.values()) <= {1}
    report = await verify(log)
    assert report.problems == ()


@pytest.mark.parametrize("after", [1, 150, 600], ids=lambda lines: f"after {lines}")
async def test_killed_mid_load_every_acknowledged_event_is_there_once(
    database_url: str, anyio_backend: str, after: int
) -> None:
    acknowledged: list[str] = []
    for turn in range(2):
        with child(database_url, anyio_backend, f"t{turn}-") as writer:
            writer.begin()
            writer.listen(after)
            writer.kill()
            acknowledged += writer.lines
    assert len(acknowledged) >= 2 * after
    async with opened(database_url) as log:
        await assert_recorded_once(log, acknowledged)


@pytest.mark.soak
@pytest.mark.parametrize("round_", range(10))
async def test_killed_again_and_again_nothing_is_lost(database_url: str, anyio_backend: str, round_: int) -> None:
    acknowledged: list[str] = []
    for turn in range(6):
        with child(database_url, anyio_backend, f"t{turn}-") as writer:
            writer.begin()
            writer.listen(1 + 97 * turn * (round_ + 1))
            writer.kill()
            acknowledged += writer.lines
        async with opened(database_url) as log:
            await assert_recorded_once(log, acknowledged)


async def test_a_rebuild_that_was_killed_leaves_the_table_and_can_be_taken_up(
    database_url: str, anyio_backend: str
) -> None:
    async with opened(database_url) as log:
        async with anyio.create_task_group() as tasks:
            for number in range(900):
                first = proposed(f"c{number}")
                tasks.start_soon(log.append, first.key, [first], 0, "u")
        await tamper(log, "UPDATE tool_call_attempts SET worker = 'x'")
    command = [sys.executable, "-m", "tests.crash.rebuilder", database_url, anyio_backend]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        done, total = map(int, process.stdout.readline().split())
        process.kill()
    assert 0 < done < total
    async with opened(database_url) as log:
        damaged = await read_attempt(log, "m:c0", "u")
        assert damaged is not None
        assert damaged.worker == "x"
        steps: list[int] = []
        report = await rebuild(log, progress=lambda done, total: steps.append(done))
        assert report.ok
        assert report.streams < 900
        assert steps[0] > done
        assert (await verify(log)).problems == ()


async def tail(log: EventLog, until: anyio.Event, seen: list[int]) -> None:
    """Follow the log until everybody has ended and everything has been seen."""
    async with log.subscribe(None) as events:
        while not until.is_set() or not seen or seen[-1] < await log.head():
            with anyio.move_on_after(0.5):
                seen.append((await anext(events)).position)


@pytest.mark.parametrize("calls", [150, pytest.param(3000, marks=pytest.mark.soak)])
async def test_processes_that_want_the_same_keys_and_a_reader_that_misses_nothing(
    database_url: str, anyio_backend: str, calls: int
) -> None:
    seen: list[int] = []
    ended = anyio.Event()
    async with opened(database_url) as log:
        with ExitStack() as stack:
            writers = [stack.enter_context(child(database_url, anyio_backend, "c", calls)) for _ in range(WRITERS)]
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(tail, log, ended, seen)
                for writer in writers:
                    writer.begin()
                for writer in writers:
                    await anyio.to_thread.run_sync(writer.listen)
                ended.set()
            for writer in writers:
                writer.process.wait()
        assert [writer.process.returncode for writer in writers] == [0] * WRITERS
        acknowledged = [name for writer in writers for name in writer.lines]
        await assert_recorded_once(log, acknowledged)
        events = await recorded_events(log)
        assert seen == [entry.position for entry in events]
        assert Counter(entry.event.id for entry in events) == Counter(acknowledged)
        for kind in (Proposed, Executed):
            per_key = Counter(entry.key for entry in events if isinstance(entry.event, kind))
            assert per_key == Counter(f"m:c{number}" for number in range(calls))
