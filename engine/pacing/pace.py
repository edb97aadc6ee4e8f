"""The pace within one process: each waits for its turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Final

import anyio

from engine.pacing.rate import SECOND, Rate, TooSoon

__all__ = ("Pace",)

_KEYS: Final = 4096


class Pace:
    """Keeps any number of paces apart, each by its key; of more than 4096 the one used longest ago is forgotten."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        from cachetools import LRUCache

        self._clock = clock
        self._due: LRUCache[Hashable, int] = LRUCache(_KEYS)

    def __repr__(self) -> str:
        return f"<Pace of {len(self._due)} keys>"

    async def turn(self, key: Hashable, rate: Rate, longest: float) -> None:
        """Wait until the next may be done, and count it. A wait that is cancelled counts nothing.

        :param longest: seconds to wait, at most
        :raises TooSoon: if its turn would come later
        """
        until = anyio.current_time() + longest
        while (lack := self._taken(key, rate)) > 0:
            if anyio.current_time() + lack >= until:
                raise TooSoon(lack)
            await anyio.sleep(lack)

    def _taken(self, key: Hashable, rate: Rate) -> float:
        """Take one, or return the seconds until there is one."""
        now = round(self._clock() * SECOND)
        due = self._due.get(key, now)
        taken = rate.taken(due, now)
        if taken is None:
            return rate.lack(due, now) / SECOND
        self._due[key] = taken
        return 0.0
