"""Subscriptions: catch up from a position, then follow live; a name keeps the position across restarts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self

import msgspec

from events.types import Recorded, ToolEvent

__all__ = ("Subscription", "SubscriptionStatistics")

_BACKSTOP = 1.0
_SAVE_EVERY = 256


class SubscriptionStatistics(msgspec.Struct, frozen=True):
    """How far a subscription has come: the last position handed out, the last one saved, and how many were read."""

    position: int
    saved: int
    read: int


class Subscription(AsyncIterator[Recorded[ToolEvent]]):
    """An endless async iterator of Recorded, in position order, none missed.

    Asking for the next event says that the one before is dealt with. The checkpoint of a named subscription is saved
    then (every 256 events, when it has caught up, and on closing), so that after a crash delivery begins again
    at most that far back: each event arrives at least once. A subscriber that stops reading costs the log nothing.

    :param name: the checkpoint's name; None: no checkpoint is kept
    """

    def __init__(
        self,
        name: str | None,
        position: int,
        page: Callable[[int], Awaitable[tuple[Sequence[Recorded[ToolEvent]], int]]],
        wait: Callable[[int, float], Awaitable[None]],
        load: Callable[[str], Awaitable[int | None]],
        save: Callable[[str, int], Awaitable[None]],
    ) -> None:
        self.name = name
        self._position = self._saved = position
        self._scanned = position
        self._page = page
        self._wait = wait
        self._load = load
        self._save = save
        self._pending: list[Recorded[ToolEvent]] = []
        self._read = 0
        self._started = False

    def __repr__(self) -> str:
        return f"<Subscription {self.name or 'unnamed'} at {self._position}, saved {self._saved}>"

    def statistics(self) -> SubscriptionStatistics:
        """Return a snapshot."""
        return SubscriptionStatistics(self._position, self._saved, self._read)

    def __aiter__(self) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.save()

    async def __anext__(self) -> Recorded[ToolEvent]:
        if not self._started:
            await self._start()
        if self._read and self._position - self._saved >= _SAVE_EVERY:
            await self.save()
        while not self._pending:
            await self._fill()
        recorded = self._pending.pop()
        self._position = recorded.position
        self._read += 1
        return recorded

    async def _start(self) -> None:
        self._started = True
        if self.name is None:
            return
        saved = await self._load(self.name)
        if saved is not None:
            self._position = self._saved = self._scanned = saved

    async def _fill(self) -> None:
        page, scanned = await self._page(self._scanned)
        if page or scanned > self._scanned:
            self._scanned = scanned
            self._pending = list(reversed(page))
            return
        # Caught up: what was handed out has been dealt with, for the next one was asked for.
        await self.save()
        await self._wait(self._scanned, _BACKSTOP)

    async def save(self) -> None:
        """Save the position of the last event handed out. :raises LogUnavailable: if it cannot be written"""
        if self.name is not None and self._position > self._saved:
            await self._save(self.name, self._position)
            self._saved = self._position
