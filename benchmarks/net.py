"""The client that tools go out by, beside bare httpx, over warm connections to a server on this machine.

Run as ``python -m benchmarks.net``. Both ask the same server for the same bodies, turn by turn. Shown are the time of a
request, the waiting for the server included, and the client's CPU time in it, which a busy machine changes less.
"""

from __future__ import annotations

from functools import partial

import httpx

from benchmarks.command import main
from benchmarks.figures import Figure
from benchmarks.interleaved import Times, compared, measured_round
from benchmarks.loopback import loopback
from benchmarks.loops import LOOPS, run_on
from benchmarks.scale import Scale
from engine.net.allow_list import AllowList
from engine.net.client import SafeClient
from engine.net.policy import NetPolicy

__all__ = ("measure_net",)

_GOAL = 1.15
_SIZES = (1_000, 100_000)
_REQUESTS = 10


def measure_net(scale: Scale) -> list[Figure]:
    """Return how long a GET takes, and how much longer than of bare httpx, of a small and a large body."""
    figures: list[Figure] = []
    with loopback() as origin:
        for size in _SIZES:
            for loop in LOOPS:
                rounds = run_on(loop, _measured, f"{origin}/{size}", size, scale)
                figures += compared(f"GET of {size // 1000} KB, {loop}", rounds, _GOAL)
    return figures


async def _measured(url: str, size: int, scale: Scale) -> list[Times]:
    """Return for each round, for each client, its turns' seconds a request."""
    safe = SafeClient(NetPolicy(allow=AllowList(("127.0.0.1",))))
    async with httpx.AsyncClient(trust_env=False) as bare:
        works = {"SafeClient": partial(_safe, safe, url), "bare httpx": partial(_bare, bare, url)}
        for work in works.values():
            assert await work() == size
        rounds = [await measured_round(works, scale.slice, _REQUESTS) for _ in range(scale.rounds)]
    await safe.aclose()
    return rounds


async def _safe(client: SafeClient, url: str) -> int:
    return len((await client.request("GET", url)).body)


async def _bare(client: httpx.AsyncClient, url: str) -> int:
    return len((await client.get(url)).content)


if __name__ == "__main__":
    main(alone=[measure_net])
