"""Cancelled at any moment, an append is there once or not at all; nothing else is disturbed."""

from __future__ import annotations

import random

import anyio
import pytest

from events import EventLog, Executed, Proposed, Recorded, ToolEvent
from projections import verify
from tests.events.appends import follow, proposed
from tests.logs import recorded_events

__all__ = ()

pytestmark = pytest.mark.anyio


async def _pass_time(turns: int) -> None:
    for _ in range(turns):
        await anyio.sleep(0)


async def test_a_storm_of_cancellations_loses_doubles_and_halves_nothing(log: EventLog) -> None:
    chance = random.Random(7)
    begun: list[Proposed] = []
    acknowledged: dict[str, list[Recorded[ToolEvent]]] = {}

    async def call(first: Proposed) -> None:
        acknowledged[first.id] = await log.append(first.key, [first, follow(Executed, first, result=1)], 0, "u")

    async def cancelled_call(first: Proposed, turns: int) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call, first)
            await _pass_time(turns)
            tasks.cancel_scope.cancel()

    with anyio.fail_after(60):
        for round_ in range(6):
            async with anyio.create_task_group() as tasks:
                for number in range(40):
                    first = proposed(f"c{round_}/{number}")
                    begun.append(first)
                    if number % 2:
                        tasks.start_soon(cancelled_call, first, chance.randrange(30))
                    else:
                        tasks.start_soon(call, first)
    stored = await recorded_events(log)
    by_key: dict[str, list[Recorded[ToolEvent]]] = {}
    for entry in stored:
        by_key.setdefault(entry.key, []).append(entry)
    assert all([entry.version for entry in entries] == [1, 2] for entries in by_key.values())
    assert {entry.event.id for entry in stored if entry.version == 1} <= {first.id for first in begun}
    for first in begun:
        if first.id in acknowledged:
            assert by_key[first.key] == acknowledged[first.id]
    assert len(acknowledged) >= len(begun) // 2
    assert (await verify(log)).ok


async def test_after_a_cancellation_the_same_append_says_what_became_of_it(log: EventLog) -> None:
    for turns in range(12):
        first = proposed(f"c{turns}")
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(log.append, first.key, [first], 0, "u")
                await _pass_time(turns)
                scope.cancel()
        [entry] = await log.append(first.key, [first], 0, "u")
        assert (entry.version, entry.event.id) == (1, first.id)
    assert len(await recorded_events(log)) == 12


async def test_an_append_cancelled_beforehand_writes_nothing(log: EventLog) -> None:
    first = proposed("c1")
    with anyio.CancelScope() as scope:
        scope.cancel()
        await log.append(first.key, [first], 0, "u")
    assert scope.cancelled_caught
    assert await recorded_events(log) == []
