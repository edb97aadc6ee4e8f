"""Subscriptions: everything, in order, once; live; checkpoints; and readers that stop."""

from __future__ import annotations

import anyio
import pytest

from events import EventLog, Executed
from events.reading import PAGE
from tests.events.appends import follow, proposed
from tests.logs import recorded_events

__all__ = ()

pytestmark = pytest.mark.anyio


async def append(log: EventLog, *names: str, text: str = "") -> None:
    for name in names:
        first = proposed(name, arguments={"text": text})
        await log.append(first.key, [first], 0, "u")


async def take(log: EventLog, count: int, name: str | None = None, after: int = 0) -> list[str]:
    async with log.subscribe(name, after) as events:
        return [(await anext(events)).event.call_id for _ in range(count)]


async def test_what_is_there_comes_first_then_what_is_appended(log: EventLog) -> None:
    await append(log, "a", "b")
    seen: list[str] = []
    caught_up = anyio.Event()

    async def follower() -> None:
        async for entry in log.subscribe(None):
            seen.append(entry.event.call_id)
            if len(seen) == 2:
                caught_up.set()
            if len(seen) == 4:
                return

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follower)
            await caught_up.wait()
            await append(log, "c", "d")
    assert seen == ["a", "b", "c", "d"]


async def test_nothing_is_missed_while_many_append(log: EventLog) -> None:
    seen: list[int] = []

    async def follower() -> None:
        async for entry in log.subscribe(None):
            seen.append(entry.position)
            if len(seen) == 400:
                return

    async def caller(number: int) -> None:
        for turn in range(10):
            first = proposed(f"c{turn}", message_id=f"m{number}")
            await log.append(first.key, [first], 0, "u")
            await log.append(first.key, [follow(Executed, first, result=turn)], 1, "u")

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follower)
            for number in range(20):
                tasks.start_soon(caller, number)
    assert seen == [entry.position for entry in await recorded_events(log)]


async def test_a_long_log_is_followed_page_by_page(log: EventLog) -> None:
    async def write(number: int) -> None:
        first = proposed(f"c{number}")
        await log.append(first.key, [first], 0, "u")

    async with anyio.create_task_group() as tasks:
        for number in range(PAGE + 100):
            tasks.start_soon(write, number)
    seen: list[int] = []
    with anyio.fail_after(20):
        async for entry in log.subscribe(None):
            if not seen:
                await append(log, "last")
            seen.append(entry.position)
            if entry.event.call_id == "last":
                break
    assert seen == [entry.position for entry in await recorded_events(log)]
    assert len(seen) == PAGE + 101


async def test_a_name_goes_on_where_it_was(log: EventLog) -> None:
    await append(log, "a", "b", "c")
    assert await take(log, 2, "mine") == ["a", "b"]
    assert await take(log, 1, "mine") == ["c"]
    assert await take(log, 3, "other") == ["a", "b", "c"]
    assert await take(log, 3) == ["a", "b", "c"]


async def test_where_to_begin_counts_only_until_there_is_a_checkpoint(log: EventLog) -> None:
    await append(log, "a", "b", "c")
    first = (await recorded_events(log))[0].position
    assert await take(log, 1, "mine", after=first) == ["b"]
    assert await take(log, 1, "mine", after=0) == ["c"]


async def test_an_event_that_was_not_dealt_with_comes_again(log: EventLog) -> None:
    await append(log, "a", "b")

    async def fall_over() -> None:
        async with log.subscribe("mine") as events:
            async for _ in events:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fall_over()
    assert await take(log, 2, "mine") == ["a", "b"]


async def test_a_slower_twin_does_not_move_the_checkpoint_back(log: EventLog) -> None:
    await append(log, "a", "b", "c")
    slow, fast = log.subscribe("mine"), log.subscribe("mine")
    await anext(slow)
    for _ in range(3):
        await anext(fast)
    await fast.save()
    await slow.save()
    await append(log, "d")
    assert await take(log, 1, "mine") == ["d"]


async def test_a_reader_that_stops_keeps_nothing_waiting(log: EventLog) -> None:
    await append(log, "a", "b")
    events = log.subscribe("mine")
    assert (await anext(events)).event.call_id == "a"
    for number in range(20):
        await append(log, f"c{number}")
    assert events.statistics().read == 1
    assert "at " in repr(events)


async def test_a_reader_can_be_cancelled_and_another_goes_on(log: EventLog) -> None:
    await append(log, "a")
    waiting = anyio.Event()

    async def follower() -> None:
        async for _ in log.subscribe(None):
            waiting.set()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follower)
            await waiting.wait()
            tasks.cancel_scope.cancel()
    await append(log, "b")
    assert await take(log, 2) == ["a", "b"]


@pytest.mark.parametrize("letter", ["x", "é", "漢"])
async def test_case_journal_07_a_long_event_commits_and_wakes_its_reader(log: EventLog, letter: str) -> None:
    sizes = [size // len(letter.encode()) for size in (7999, 8000, 200_000)]
    seen: list[int] = []

    async def follower() -> None:
        async for entry in log.subscribe(None):
            seen.append(entry.position)
            if len(seen) == len(sizes):
                return

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follower)
            for number, size in enumerate(sizes):
                await append(log, f"c{number}", text=letter * size)
    assert len(seen) == 3
