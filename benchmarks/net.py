"""The client that tools go out by, beside bare httpx, over warm connections to a server on this machine.

Run as ``python -m benchmarks.net``. Both ask the same server for the same bodies, turn by turn. Shown are the time of a
request, the waiting for the server included, and the client's CPU time in it, which a busy machine changes less.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from itertools import count

import httpx

from benchmarks.command import main
from benchmarks.figures import Figure
from benchmarks.loopback import loopback
from benchmarks.loops import LOOPS, run_on
from benchmarks.scale import Scale
from engine.net.allow_list import AllowList
from engine.net.client import SafeClient
from engine.net.policy import NetPolicy

__all__ = ("measure_net",)

_GOAL = 1.15
_SIZES = (1_000, 100_000)
_CLOCKS = {"time": time.perf_counter, "CPU": time.thread_time}
_TURNS = 10
_REQUESTS = 10
_Works = Mapping[str, Callable[[], Awaitable[int]]]
_Times = dict[tuple[str, str], list[float]]


def measure_net(scale: Scale) -> list[Figure]:
    """Return how long a GET takes, and how much longer than of bare httpx, of a small and a large body."""
    figures: list[Figure] = []
    with loopback() as origin:
        for size in _SIZES:
            for loop in LOOPS:
                rounds = run_on(loop, _measured, f"{origin}/{size}", size, scale)
                figures += _figures(f"GET of {size // 1000} KB, {loop}", rounds)
    return figures


def _figures(name: str, rounds: list[_Times]) -> list[Figure]:
    medians = [{work: statistics.median(times) for work, times in each.items()} for each in rounds]
    figures = [
        Figure.of(f"{name}: {work}, {clock}", "us", [1e6 * each[work, clock] for each in medians])
        for work, clock in medians[0]
    ]
    for clock in _CLOCKS:
        ratios = [each["SafeClient", clock] / each["bare httpx", clock] for each in medians]
        figures.append(Figure.of(f"{name}: {clock}", "of bare", ratios, _GOAL, at_most=True))
    return figures


async def _measured(url: str, size: int, scale: Scale) -> list[_Times]:
    """Return for each round, for each client, its turns' seconds a request."""
    safe = SafeClient(NetPolicy(allow=AllowList(("127.0.0.1",))))
    async with httpx.AsyncClient(trust_env=False) as bare:
        works = {"SafeClient": partial(_safe, safe, url), "bare httpx": partial(_bare, bare, url)}
        for work in works.values():
            assert await work() == size
        rounds = [await _round(works, scale.slice) for _ in range(scale.rounds)]
    await safe.aclose()
    return rounds


async def _round(works: _Works, seconds: float) -> _Times:
    gc.collect()
    times: _Times = defaultdict(list)
    ends = time.perf_counter() + seconds
    for turn in count():
        if turn >= _TURNS and time.perf_counter() > ends:
            break
        for name, work in works.items():
            started = [clock() for clock in _CLOCKS.values()]
            for _ in range(_REQUESTS):
                await work()
            for (label, clock), start in zip(_CLOCKS.items(), started, strict=True):
                times[name, label].append((clock() - start) / _REQUESTS)
    return times


async def _safe(client: SafeClient, url: str) -> int:
    return len((await client.request("GET", url)).body)


async def _bare(client: httpx.AsyncClient, url: str) -> int:
    return len((await client.get(url)).content)


if __name__ == "__main__":
    main(alone=[measure_net])
