"""Reading, verifying and rebuilding a long log, and appending to it while another process reads it all.

Run as ``python -m benchmarks.reading``.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from benchmarks.catching_up import measure_catching_up
from benchmarks.command import main
from benchmarks.databases import Database
from benchmarks.figures import Figure
from benchmarks.history import fill
from benchmarks.loops import LOOPS, run_on
from benchmarks.machine import resident_megabytes
from benchmarks.scale import Scale
from engine.migration import CHAINS
from events.log import EventLog
from events.opening import open_log
from projections.attempts import AttemptsProjection
from projections.rebuild import rebuild
from projections.report import Report
from projections.verify import verify

__all__ = ("Reading", "measure_read", "measure_reading")

_READ_GOALS = {"SQLite": 200_000.0}
_FOLD_GOAL = 50_000.0
_Check: TypeAlias = Callable[[EventLog], Awaitable[Report]]


class Reading(msgspec.Struct, frozen=True):
    """One sample: events decoded a second, the same per second of processor time (which neighbours disturb less), and
    how the resident set grew from a tenth of the way on, in megabytes."""

    rate: float
    effort: float
    growth: float
    resident: float


def measure_reading(database: Database, scale: Scale) -> list[Figure]:
    """Return the figures of one kind of database."""
    count = scale.events if database.name == "SQLite" else scale.postgres_events
    url = database.fresh()
    try:
        started = time.perf_counter()
        run_on("asyncio", fill, url, count)
        filled = count / (time.perf_counter() - started)
        name = f"{database.name}: {{}} {count:,} events"
        return [
            Figure.of(name.format("append_many of 250, for"), "/s", [filled]),
            *_reads(name, url, scale, _READ_GOALS.get(database.name)),
            *_folds(name, url),
            measure_catching_up(name, url, count, scale),
        ]
    finally:
        database.drop(url)


def _reads(name: str, url: str, scale: Scale, goal: float | None) -> list[Figure]:
    samples: dict[str, list[Reading]] = defaultdict(list)
    for _ in range(min(scale.rounds, 3)):
        for loop in LOOPS:
            samples[loop].append(run_on(loop, measure_read, url))
    figures: list[Figure] = []
    for loop, found in samples.items():
        label = name.format(f"read, {loop},")
        figures.append(Figure.of(label, "/s", [sample.rate for sample in found], goal))
        figures.append(Figure.of(label, "/cpu s", [sample.effort for sample in found]))
        figures.append(Figure.of(f"{label}: resident set", "MB", [sample.resident for sample in found]))
        growth = [sample.growth for sample in found]
        figures.append(Figure.of(f"{label}: its growth after a tenth", "MB", growth, 16.0, at_most=True))
    return figures


async def measure_read(url: str) -> Reading:
    """Read the whole log, decoded, and return how that went."""
    log = await open_log(url, AttemptsProjection(), CHAINS)
    total = await log.head()
    step = max(1, total // 100)
    count = 0
    sizes: list[float] = []
    started, spent = time.perf_counter(), time.process_time()
    async for _ in log.read_all():
        count += 1
        if count % step == 0:
            sizes.append(resident_megabytes())
    elapsed, spent = time.perf_counter() - started, time.process_time() - spent
    await log.aclose()
    assert count == total
    return Reading(count / elapsed, count / spent, max(sizes) - sizes[len(sizes) // 10], max(sizes))


def _folds(name: str, url: str) -> list[Figure]:
    figures: list[Figure] = []
    checks: tuple[tuple[str, _Check], ...] = (("verify, with seals,", verify), ("rebuild,", rebuild))
    for label, check in checks:
        rate, effort = run_on("asyncio", _fold, url, check)
        figures.append(Figure.of(name.format(label), "/s", [rate], _FOLD_GOAL))
        figures.append(Figure.of(name.format(label), "/cpu s", [effort]))
    return figures


async def _fold(url: str, check: _Check) -> tuple[float, float]:
    log = await open_log(url, AttemptsProjection(), CHAINS)
    total = await log.head()
    started, spent = time.perf_counter(), _processor_time()
    report = await check(log)
    elapsed, spent = time.perf_counter() - started, _processor_time() - spent
    await log.aclose()
    assert report.ok, report
    return total / elapsed, total / spent


def _processor_time() -> float:
    """Return the seconds that this process has used, and those that it started and that have ended."""
    return sum(os.times()[:4])


if __name__ == "__main__":
    main(measure_reading)
