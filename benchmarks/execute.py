"""``execute`` of a tool that does nothing: on databases, Proposed and Executed both durable, and on ``null://``.

Run as ``python -m benchmarks.execute``. ``null://`` stores nothing: what is left is what the engine costs. On a
database, bare commits by hand stand beside it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
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
_ALONE = 60.0
_LOOPS_AT_ONCE = 64
_RATE = 10_000.0
_TRIO = 2.0
_Samples = defaultdict[tuple[str, str], list[float]]


class Executing(msgspec.Struct, frozen=True):
    """One sample: calls a second, and what one call took, ordered, in seconds.

    :ivar processor: seconds of processor time that one call took, of the loop's thread
    """

    rate: float
    times: tuple[float, ...]
    processor: float

    def within(self, share: float) -> float:
        """Return the time, in ms, within which this share of the calls was done."""
        return 1000 * self.times[min(len(self.times) - 1, int(share * len(self.times)))]

    def add_to(self, samples: _Samples, name: str) -> None:
        """Add the figures of a load to the samples of this name."""
        samples[name, "calls/s"].append(self.rate)
        for percent in (50, 95, 99):
            samples[name, f"ms {percent} %"].append(self.within(percent / 100))


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
        Figure.of(name, unit, values, goal if unit == "per commit" and " 64 at once" in name else None)
        for (name, unit), values in samples.items()
    ]


def measure_engine(scale: Scale) -> list[Figure]:
    """Return what the engine costs by itself: on ``null://``, which stores nothing; asyncio and trio alternate."""
    samples: _Samples = defaultdict(list)
    for _ in range(scale.rounds):
        for callers in scale.callers:
            own = []
            for loop in LOOPS:
                name = _name("null://", callers, loop)
                done = run_on(loop, measure_executions, "null://", callers, scale.appends_by(callers))
                done.add_to(samples, name)
                samples[name, "us of CPU"].append(1e6 * done.processor)
                own.append(done.processor)
                if callers == 1:
                    samples[name, "us a call"].append(1000 * done.within(0.5))
            samples[f"null://: execute, {callers} at once, trio", "of asyncio"].append(own[1] / own[0])
    return [_with_goal(name, unit, values) for (name, unit), values in samples.items()]


def _with_goal(name: str, unit: str, values: Sequence[float]) -> Figure:
    goals = {
        (_name("null://", 1, "asyncio"), "us a call"): _ALONE,
        (_name("null://", _LOOPS_AT_ONCE, "asyncio"), "calls/s"): _RATE,
    }
    goal = _TRIO if unit == "of asyncio" else goals.get((name, unit))
    return Figure.of(name, unit, values, goal, at_most=unit != "calls/s")


def _name(journal: str, callers: int, loop: str) -> str:
    return f"{journal}: execute, {callers} at once, {loop}"


def _round(database: Database, bare: Bare, scale: Scale, samples: _Samples) -> None:
    times = bare.commit_times(scale.slice)
    for loop in LOOPS:
        for callers in scale.callers:
            url = database.fresh()
            done = run_on(loop, measure_executions, url, callers, scale.appends_by(callers) // 4)
            database.drop(url)
            before, times = times, bare.commit_times(scale.slice)
            commits = (len(before) + len(times)) / (sum(before) + sum(times))
            name = _name(database.name, callers, loop)
            done.add_to(samples, name)
            samples[name, "per commit"].append(done.rate / commits)


async def measure_executions(url: str, callers: int, calls: int) -> Executing:
    """Execute ``calls`` calls, ``callers`` at once, each of a message of its own, and return how that went."""
    times: list[float] = []
    async with Engine.open(url, rows=[NOOP_ROW], tools=[Noop]) as engine:
        await _execute(engine, "warm", 1, [])
        started, used = time.perf_counter(), time.thread_time()
        async with anyio.create_task_group() as tasks:
            for caller in range(callers):
                tasks.start_soon(partial(_execute, engine, str(caller), max(1, calls // callers), times))
        elapsed, used = time.perf_counter() - started, time.thread_time() - used
    return Executing(len(times) / elapsed, tuple(sorted(times)), used / len(times))


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
