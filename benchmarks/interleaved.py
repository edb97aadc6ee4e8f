"""Ours and a bare client's work turn by turn on warm connections, and what the one costs beside the other."""

from __future__ import annotations

import gc
import statistics
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from benchmarks.figures import Figure

__all__ = ("Times", "Works", "compared", "measured_round")

Works: TypeAlias = Mapping[str, Callable[[], Awaitable[Any]]]
"""What is measured, by name: ours first, then the bare one."""

Times: TypeAlias = dict[tuple[str, str], list[float]]
"""The seconds of each turn, by work and clock."""

_CLOCKS: Final = MappingProxyType({"time": time.perf_counter, "CPU": time.thread_time})
_TURNS = 10


async def measured_round(works: Works, seconds: float, times_a_turn: int) -> Times:
    """Let the works take turns, ten at least, and for so many seconds at least."""
    gc.collect()
    times: Times = defaultdict(list)
    ends = time.perf_counter() + seconds
    for turn in count():
        if turn >= _TURNS and time.perf_counter() > ends:
            break
        for name, work in works.items():
            started = [clock() for clock in _CLOCKS.values()]
            for _ in range(times_a_turn):
                await work()
            for (label, clock), start in zip(_CLOCKS.items(), started, strict=True):
                times[name, label].append((clock() - start) / times_a_turn)
    return times


def compared(name: str, rounds: list[Times], goal: float) -> list[Figure]:
    """Return each work's time and CPU time, and how much of the bare one's ours takes: at most the goal."""
    medians = [{work: statistics.median(times) for work, times in each.items()} for each in rounds]
    ours, bare = dict.fromkeys(work for work, _ in medians[0])
    figures = [
        Figure.of(f"{name}: {work}, {clock}", "us", [1e6 * each[work, clock] for each in medians])
        for work, clock in medians[0]
    ]
    for clock in _CLOCKS:
        ratios = [each[ours, clock] / each[bare, clock] for each in medians]
        figures.append(Figure.of(f"{name}: {clock}", "of bare", ratios, goal, at_most=True))
    return figures
