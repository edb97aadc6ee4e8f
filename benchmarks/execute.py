"""``execute`` of a tool that does nothing, Proposed and Executed both durable, beside bare commits by hand.

Run as ``python -m benchmarks.execute``.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from contextlib import aclosing
from functools import partial

import anyio
import msgspec

from benchmarks.command import main
from benchmarks.databases import Bare, Database
from benchmarks.figures import Figure
from benchmarks.loops import LOOPS, run_on
from benchmarks.noop import NOOP_ROW, Noop
from benchmarks.scale import Scale
from benchmarks.workload import USER
from engine.call import ToolCall
from engine.context import CallContext
from engine.engine import Engine
from events.types import Executed

__all__ = ("Executing", "measure_engine", "measure_execute", "measure_executions")

_GOALS = {"SQLite": 0.5, "Postgres": 0.8}
_Samples = defaultdict[tuple[str, str], list[float]]


class Executing(msgspec.Struct, frozen=True):
    """One sample: calls a second, and the median and 99th percentile of one call's time, in seconds."""

    rate: float
    median: float
    worst: float


def measure_execute(database: Database, scale: Scale) -> list[Figure]:
    """Return the figures of one kind of database."""
    samples: _Samples = defaultdict(list)
    for _ in range(scale.rounds):
        url = database.fresh()
        bare = database.bare(url)
        try:
            _round(database, bare, scale, samples)
        finally:
            bare.close()
            database.drop(url)
    goal = _GOALS[database.name]
    return [
        Figure.of(
            f"{database.name}: {name}",
            unit,
            values,
            goal if unit == "per commit" and " 64 at once" in name else None,
        )
        for (name, unit), values in samples.items()
    ]


def measure_engine(scale: Scale) -> list[Figure]:
    """Return what the engine costs by itself: on ``null://``, which stores nothing."""
    samples: _Samples = defaultdict(list)
    for _ in range(scale.rounds):
        for loop in LOOPS:
            for callers in scale.callers:
                done = run_on(loop, measure_executions, "null://", callers, scale.appends_by(callers) // 4)
                samples[f"execute, {callers} at once, {loop}", "calls/s"].append(done.rate)
                samples[f"execute, {callers} at once, {loop}", "us a call"].append(1e6 / done.rate)
    return [Figure.of(f"null://: {name}", unit, values) for (name, unit), values in samples.items()]


def _round(database: Database, bare: Bare, scale: Scale, samples: _Samples) -> None:
    times = bare.commit_times(scale.slice)
    for loop in LOOPS:
        for callers in scale.callers:
            url = database.fresh()
            calls = scale.appends_by(callers) // 4
            done = run_on(loop, measure_executions, url, callers, calls)
            database.drop(url)
            before, times = times, bare.commit_times(scale.slice)
            commits = (len(before) + len(times)) / (sum(before) + sum(times))
            name = f"execute, {callers} at once, {loop}"
            samples[name, "calls/s"].append(done.rate)
            samples[name, "per commit"].append(done.rate / commits)
            samples[name, "ms median"].append(done.median * 1000)
            samples[name, "ms 99 %"].append(done.worst * 1000)


async def measure_executions(url: str, callers: int, calls: int) -> Executing:
    """Execute ``calls`` calls, ``callers`` at once, each of a message of its own, and return how that went."""
    times: list[float] = []
    async with Engine.open(url, rows=[NOOP_ROW], tools=[Noop]) as engine:
        await _execute(engine, "warm", 1, [])
        started = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for caller in range(callers):
                tasks.start_soon(partial(_execute, engine, str(caller), max(1, calls // callers), times))
        elapsed = time.perf_counter() - started
    ordered = sorted(times)
    return Executing(len(times) / elapsed, statistics.median(ordered), ordered[int(len(ordered) * 0.99)])


async def _execute(engine: Engine, caller: str, calls: int, times: list[float]) -> None:
    clock = time.perf_counter
    for number in range(calls):
        started = clock()
        context = CallContext(user_id=USER, message_id=f"m-{caller}-{number}", tool_ids=(NOOP_ROW.id,))
        call = ToolCall(id="call_1", name="run", arguments={"q": "x" * 60})
        async with aclosing(engine.execute(call, context)) as events:
            seen = [event async for event in events]
        assert isinstance(seen[-1], Executed)
        times.append(clock() - started)


if __name__ == "__main__":
    main(measure_execute, alone=[measure_engine])
