"""``null://``: an append is taken at once, and is otherwise like any other."""

from __future__ import annotations

import anyio
import pytest

from events.null import NullStore, NullWriter
from events.store import Appended, Unit
from tests.events.appends import append, proposed

__all__ = ()

pytestmark = pytest.mark.anyio


def unit(name: str) -> Unit:
    return (append(proposed(name)),)


async def test_positions_rise_and_every_append_is_counted() -> None:
    store = NullStore()
    writer = NullWriter(store)
    seen: list[int] = []

    async def caller(name: str) -> None:
        for number in range(5):
            (verdict,) = await writer.submit(unit(f"{name}{number}"))
            assert isinstance(verdict, Appended)
            seen.extend(verdict.positions)

    async with anyio.create_task_group() as tasks:
        for name in "abcd":
            tasks.start_soon(caller, name)
    assert seen == list(range(1, 21))
    statistics = writer.statistics()
    assert (statistics.appends, statistics.batches, statistics.largest_batch, statistics.waiting) == (20, 20, 1, 0)


async def test_others_have_their_turn_when_a_stream_begins() -> None:
    writer = NullWriter(NullStore())
    turns: list[str] = []

    async def caller(name: str) -> None:
        for number in range(3):
            await writer.submit(unit(f"{name}{number}"))
            turns.append(name)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(caller, "a")
        tasks.start_soon(caller, "b")
    assert sorted(turns[:2]) == ["a", "b"]


async def test_a_cancelled_caller_opens_no_stream() -> None:
    store = NullStore()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await NullWriter(store).submit(unit("a"))
    assert await store.head() == 0
