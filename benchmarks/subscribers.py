"""A subscriber that has stopped reading, beside appends without one. Run as ``python -m benchmarks.subscribers``."""

from __future__ import annotations

from benchmarks.command import main
from benchmarks.databases import Database
from benchmarks.figures import Figure
from benchmarks.log import append_all
from benchmarks.loops import run_on
from benchmarks.scale import Scale
from engine.migration import CHAINS
from events.opening import open_log
from projections.attempts import AttemptsProjection

__all__ = ("measure_stopped", "measure_subscribers")

_CALLERS = 64
_GOAL = 0.9


def measure_subscribers(database: Database, scale: Scale) -> list[Figure]:
    """Return what a stopped subscriber leaves of the append rate, alternating with and without it."""
    shares = []
    for _ in range(scale.rounds):
        url = database.fresh()
        shares.append(run_on("asyncio", measure_stopped, url, scale.appends_by(_CALLERS)))
        database.drop(url)
    return [Figure.of(f"{database.name}: appends beside a stopped subscriber", "of alone", shares, _GOAL)]


async def measure_stopped(url: str, appends: int) -> float:
    """Append without, with, and again without a subscriber that has read one event and stopped; return the ratio."""
    log = await open_log(url, AttemptsProjection(), CHAINS)
    first = await append_all(log, _CALLERS, appends)
    async with log.subscribe("stopped") as subscription:
        await anext(subscription)
        beside = await append_all(log, _CALLERS, appends)
    again = await append_all(log, _CALLERS, appends)
    await log.aclose()
    return 2 * beside.rate / (first.rate + again.rate)


if __name__ == "__main__":
    main(measure_subscribers)
