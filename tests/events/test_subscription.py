"""What a subscription does with pages, checkpoints and waits, over a log of lists."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import anyio
import anyio.lowlevel
import pytest

from events import Recorded, Subscription, ToolEvent
from tests.events.appends import proposed

__all__ = ()

pytestmark = pytest.mark.anyio


class Pages:
    """A log of which positions below ``settled`` can be read, in pages of three."""

    def __init__(self, positions: Sequence[int]) -> None:
        self.positions = list(positions)
        self.saved: dict[str, int] = {}
        self.saves: list[int] = []
        self.more: list[int] = []

    async def page(self, after: int) -> tuple[Sequence[Recorded[ToolEvent]], int]:
        """Return up to three records, and how far the log was looked through."""
        await anyio.lowlevel.checkpoint()
        found = [position for position in self.positions if position > after][:3]
        return [self._recorded(position) for position in found], found[-1] if found else after

    def _recorded(self, position: int) -> Recorded[ToolEvent]:
        first = proposed(f"c{position}")
        return Recorded(
            position=position, key=first.key, version=1, recorded_at=datetime.now(UTC), user_id="u", event=first
        )

    async def wait(self, after: int, timeout: float) -> None:
        """Let what is to come come."""
        await anyio.lowlevel.checkpoint()
        self.positions += self.more
        self.more = []

    async def load(self, name: str) -> int | None:
        """Return a checkpoint."""
        await anyio.lowlevel.checkpoint()
        return self.saved.get(name)

    async def save(self, name: str, position: int) -> None:
        """Keep a checkpoint."""
        await anyio.lowlevel.checkpoint()
        self.saved[name] = position
        self.saves.append(position)

    def subscription(self, name: str | None = "mine", after: int = 0) -> Subscription:
        """Return a subscription over these pages."""
        return Subscription(name, after, self.page, self.wait, self.load, self.save)


async def take(events: Subscription, count: int) -> list[int]:
    return [(await anext(events)).position for _ in range(count)]


async def test_pages_follow_each_other_and_holes_do_not_matter() -> None:
    events = Pages([2, 3, 5, 8, 13, 21, 34]).subscription()
    assert await take(events, 7) == [2, 3, 5, 8, 13, 21, 34]


async def test_it_waits_where_the_log_ends_and_saves_before() -> None:
    pages = Pages([1, 2])
    events = pages.subscription()
    await take(events, 2)
    assert pages.saves == []
    pages.more = [3]
    assert await take(events, 1) == [3]
    assert pages.saves == [2]
    await events.save()
    assert pages.saved == {"mine": 3}


async def test_a_checkpoint_is_saved_every_so_often() -> None:
    pages = Pages(range(1, 600))
    await take(pages.subscription(), 599)
    assert pages.saves == [256, 512]


async def test_what_was_only_handed_out_is_not_saved_when_the_reader_fails() -> None:
    pages = Pages([1, 2, 3])
    with pytest.raises(ZeroDivisionError):
        await fail_on_second(pages)
    assert pages.saved == {}
    async with pages.subscription() as events:
        await take(events, 1)
    assert pages.saved == {"mine": 1}


async def fail_on_second(pages: Pages) -> None:
    async with pages.subscription() as events:
        await take(events, 2)
        raise ZeroDivisionError


async def test_a_checkpoint_wins_over_where_to_begin() -> None:
    pages = Pages([1, 2, 3])
    pages.saved["mine"] = 2
    assert await take(pages.subscription(after=0), 1) == [3]
    assert await take(pages.subscription("other", after=1), 1) == [2]


async def test_without_a_name_nothing_is_loaded_or_saved() -> None:
    pages = Pages([1, 2])
    pages.more = [3]
    async with pages.subscription(None) as events:
        await take(events, 3)
    assert pages.saves == []


async def test_it_says_how_far_it_is() -> None:
    events = Pages([4, 7]).subscription()
    await take(events, 2)
    assert repr(events) == "<Subscription mine at 7, saved 0>"
    statistics = events.statistics()
    assert (statistics.position, statistics.saved, statistics.read) == (7, 0, 2)
