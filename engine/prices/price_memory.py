"""Prices that were asked for a moment ago."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from copy import deepcopy
from typing import Any, Final

from cachetools import TTLCache

from engine.services import Services

__all__ = ("REMEMBERED", "PriceMemory", "price_memory")

REMEMBERED: Final = 30.0
"""Seconds for which a price is given out again."""

_ANSWERS: Final = 1024


class PriceMemory:
    """Keeps results by who asked for what; in this process only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._results: TTLCache[Hashable, dict[str, Any]] = TTLCache(_ANSWERS, REMEMBERED, clock)

    def result_of(self, key: Hashable) -> dict[str, Any] | None:
        """Return what is remembered; None: nothing."""
        # Whoever is given a result may change it.
        return deepcopy(self._results.get(key))

    def remember(self, key: Hashable, result: dict[str, Any]) -> None:
        """Keep a result."""
        self._results[key] = deepcopy(result)


def price_memory(_: Services) -> PriceMemory:
    """Return the memory of an engine; ``services.shared(price_memory)`` is its one."""
    return PriceMemory()
