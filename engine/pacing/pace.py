"""The pace within one process: each waits for its turn."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import anyio

from engine.pacing.rate import SECOND, Rate, TooSoon

__all__ = ("Pace",)

_KEYS: Final = 4096


class Pace:
    """Keeps any number of paces apart, each by its key; of more than 4096 the one used longest ago is forgotten."""

    def __init__(self) -> None:
        from cachetools import LRUCache

        self._due: LRUCache[Hashable, int] = LRUCache(_KEYS)

    def __repr__(self) -> str:
        return f"<Pace of {len(self._due)} keys>"

    async def turn(self, key: Hashable, rate: Rate, longest: float) -> None:
        """Take a turn and wait for it; who comes first is first.

        A turn is taken before it is waited for: one whose wait is cancelled has been used.

        :param longest: seconds to wait, at most
        :raises TooSoon: if its turn would come later; it was not taken
        """
        now = round(anyio.current_time() * SECOND)
        due = self._due.get(key, now)
        taken = rate.taken(due, now, round(max(0.0, longest) * SECOND))
        if taken is None:
            raise TooSoon(rate.lack(due, now) / SECOND)
        self._due[key] = taken
        await anyio.sleep(rate.wait(taken, now) / SECOND)
