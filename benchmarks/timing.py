"""How long something takes, product and comparison alternating so that both meet the same moods of the machine."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping

__all__ = ("alternate",)

_TURNS = 10
_TURNS_OF_SLOW = 3
_SLOW = 0.1


def alternate(works: Mapping[str, Callable[[], object]], rounds: int, slice_: float) -> dict[str, list[float]]:
    """Return for each piece of work its seconds of CPU time per call, a sample a round.

    In a round each has ten short turns, one after the other; its sample is their median. Work that waits for nothing is
    measured in CPU time: what other processes take does not count. The garbage collector works, as in life. A turn
    begins with a call that does not count: the first one pays for what the work before it left of caches and memory.
    Work that takes a tenth of a second has none of that, and three turns.
    """
    share = slice_ / _TURNS
    took = {name: max(_seconds(work, 1), 1e-7) for name, work in works.items()}
    repeats = {name: max(1, int(share / seconds)) for name, seconds in took.items()}
    samples: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        gc.collect()
        turns: dict[str, list[float]] = {name: [] for name in works}
        for turn in range(_TURNS):
            for name, work in works.items():
                if took[name] < _SLOW:
                    work()
                elif turn >= _TURNS_OF_SLOW:
                    continue
                turns[name].append(_seconds(work, repeats[name]))
        for name, times in turns.items():
            samples[name].append(statistics.median(times))
    return samples


def _seconds(work: Callable[[], object], repeats: int) -> float:
    clock = time.thread_time
    started = clock()
    for _ in range(repeats):
        work()
    return (clock() - started) / repeats
