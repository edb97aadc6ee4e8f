"""``verify`` and ``rebuild`` need as much memory for a large log as for a small one."""

from __future__ import annotations

import tracemalloc
from collections.abc import Awaitable, Callable

import anyio
import pytest

from events import EventLog, Executed, Proposed
from events.seal import seal
from projections import Report, rebuild, verify
from tests.events.appends import follow, proposed
from tests.lives import live

__all__ = ()

pytestmark = [pytest.mark.anyio, pytest.mark.soak]

CALLS = 1200
RESULT = "x" * 100_000


async def fill(log: EventLog) -> None:
    numbers = iter(range(CALLS))

    async def caller() -> None:
        for number in numbers:
            first: Proposed = proposed(f"c{number}")
            await live(log, first, [follow(Executed, first, result=RESULT)])

    async with anyio.create_task_group() as tasks:
        for _ in range(16):
            tasks.start_soon(caller)


@pytest.mark.parametrize("work", [verify, rebuild])
async def test_memory_stays_flat(log: EventLog, work: Callable[[EventLog], Awaitable[Report]]) -> None:
    await fill(log)
    await seal(log)
    tracemalloc.start()
    try:
        report = await work(log)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert report.ok
    assert report.events == 2 * CALLS
    assert peak < CALLS * len(RESULT) / 6
