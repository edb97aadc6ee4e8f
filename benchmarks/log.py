"""Durable appends through ``EventLog``, beside one commit after another by hand and beside whole batches by hand.

Run as ``python -m benchmarks.log``. Product and bare loop alternate: each ratio is to the bare loops just before and
just after. An append is one 400-byte event with its guarded state row, synced to disk.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from functools import partial

import anyio
import msgspec

from benchmarks.command import main
from benchmarks.databases import Bare, Database
from benchmarks.figures import Figure
from benchmarks.loops import LOOPS, run_on
from benchmarks.scale import Scale
from benchmarks.workload import USER, Pair, make_pairs
from engine.migration import CHAINS
from events.log import EventLog
from events.opening import open_log
from projections.attempts import AttemptsProjection

__all__ = ("Appending", "append_all", "measure_appends", "measure_log")

_GOALS = {("SQLite", 64): 2.0, ("SQLite", 256): 2.5, ("Postgres", 64): 3.0, ("Postgres", 256): 4.5}


class Appending(msgspec.Struct, frozen=True):
    """One sample: how many appends a second, and the median time of one, in seconds."""

    rate: float
    latency: float


def measure_log(database: Database, scale: Scale) -> list[Figure]:
    """Return the figures of one kind of database."""
    samples: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _ in range(scale.rounds):
        url = database.fresh()
        bare = database.bare(url)
        try:
            _round(database, bare, scale, samples)
        finally:
            bare.close()
            database.drop(url)
    return [
        Figure.of(f"{database.name}: {name}", unit, values, _goal(database, name, unit), at_most=unit == "of allowed")
        for (name, unit), values in samples.items()
    ]


def _round(database: Database, bare: Bare, scale: Scale, samples: dict[tuple[str, str], list[float]]) -> None:
    times = bare.commit_times(scale.slice)
    samples["bare commits, one after another", "/s"].append(_rate(times))
    limits = {callers: bare.batches(callers, scale.slice) for callers in scale.callers if callers >= 64}
    for callers, limit in limits.items():
        samples[f"bare batches of {callers}", "/s"].append(limit)
    for loop in LOOPS:
        for callers in scale.callers:
            url = database.fresh()
            done = run_on(loop, measure_appends, url, callers, scale.appends_by(callers))
            database.drop(url)
            before, times = times, bare.commit_times(scale.slice)
            both = before + times
            name = f"appends, {callers} at once, {loop}"
            samples[name, "/s"].append(done.rate)
            samples[name, "x bare"].append(done.rate / _rate(both))
            if callers in limits:
                samples[name, "of batches"].append(done.rate / limits[callers])
            if callers == 1:
                allowed = 1.5 * statistics.median(both) + 0.0004
                samples[f"one append on an idle log, {loop}", "ms"].append(done.latency * 1000)
                samples[f"one append on an idle log, {loop}", "of allowed"].append(done.latency / allowed)


def _goal(database: Database, name: str, unit: str) -> float | None:
    if unit == "of allowed":
        return 1.0
    if unit != "x bare":
        return None
    return next((goal for (kind, n), goal in _GOALS.items() if kind == database.name and f" {n} at once" in name), None)


def _rate(times: Sequence[float]) -> float:
    return len(times) / sum(times)


async def measure_appends(url: str, callers: int, appends: int) -> Appending:
    """Open a log, append the two events of each call, ``callers`` at once, and return how that went."""
    log = await open_log(url, AttemptsProjection(), CHAINS)
    done = await append_all(log, callers, appends)
    await log.aclose()
    return done


async def append_all(log: EventLog, callers: int, appends: int) -> Appending:
    """As :func:`measure_appends`, on an open log. The events are made before the clock starts."""
    shares = [make_pairs(appends // callers // 2) for _ in range(callers)]
    times: list[float] = []
    started = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for share in shares:
            tasks.start_soon(partial(_append, log, share, times))
    return Appending(len(times) / (time.perf_counter() - started), statistics.median(times))


async def _append(log: EventLog, pairs: list[Pair], times: list[float]) -> None:
    clock = time.perf_counter
    for pair in pairs:
        for version, event in enumerate(pair.events):
            started = clock()
            await log.append(pair.key, (event,), version, USER)
            times.append(clock() - started)


if __name__ == "__main__":
    main(measure_log)
