"""After the fault: others look at what is there, carry on as a production would, and look again."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path as File

import anyio
from msgspec.structs import replace

from engine import Engine, ToolCall
from events import Confirmed
from projections import AttemptRow, verify
from tests.crash.fault_beside import declare_dead
from tests.crash.fault_consumer import Consumer, told_in
from tests.crash.fault_job import Job, Said
from tests.crash.fault_paths import Path, path_named
from tests.crash.fault_sight import Sight, faults_in
from tests.crash.fault_stage import ROWS, Stage, effects_in
from tests.logs import recorded_events

__all__ = ("carry_on", "compare", "look", "reconcile")


_SHORT = 0.5
"""Seconds of a lease, where one must have been held before anybody is declared dead by it."""


@asynccontextmanager
async def _opened(job: Job, lease: float = 30.0) -> AsyncIterator[Engine]:
    stage = Stage(job.effects)
    settings = job.settings(replace(path_named(job.path).limits, lease=lease))
    async with Engine.open(job.url, rows=ROWS, tools=stage.tools(), settings=settings) as engine:
        yield engine


def _consumers(engine: Engine, job: Job) -> list[Consumer]:
    headless = path_named(job.path).headless
    return [Consumer(engine, turn, job.told, headless) for turn in job.turns]


async def look(job: Job) -> Said:
    """Let the leases of all workers be over, and look at every turn as it was left."""
    async with _opened(job) as engine:
        await declare_dead(engine)
        return Said(problems=(*await _unlike(engine, job), *await _looked(engine, job)))


async def _unlike(engine: Engine, job: Job) -> list[str]:
    """Tell whether the unbroken turn went as its path says: else its awaits would be those of another."""
    path = path_named(job.path)
    key = f"{job.turn}:{path.calls[0].id}"
    kinds = [type(record.event).__name__ async for record in engine.log.read_stream(key, user_id="u")]
    return [] if " ".join(kinds) == path.story else [f"{key} went as {' '.join(kinds)}, not as {path.story}"]


async def reconcile(job: Job) -> Said:
    """Reconcile; then no call is left that nobody works on, but for those that may be taken over."""
    async with _opened(job, lease=_SHORT) as engine:
        problems: list[str] = []
        while (report := await engine.reconcile()).steady_in > 0 or report.counts.held:
            problems += report.problems
            await anyio.sleep(min(report.steady_in, _SHORT / 10))
        problems += report.problems
        for consumer in _consumers(engine, job):
            for call in path_named(job.path).calls:
                row = await engine.attempt(consumer.key(call), user_id="u")
                if row is not None and _is_stuck(row):
                    problems.append(f"the reconciler left it: {row!r}")
        return Said(problems=(*problems, *await _looked(engine, job)))


def _is_stuck(row: AttemptRow) -> bool:
    """Tell whether nobody works on a call and nobody may; every worker that has touched it is dead."""
    if row.attempt.phase in ("open", "claimed"):
        return not row.idempotent
    return row.status == "proposed" and row.expires_at is not None and row.expires_at < datetime.now(UTC)


async def carry_on(job: Job) -> Said:
    """Carry every turn on to its end, as a production would that knows its calls; then look."""
    path = path_named(job.path)
    async with _opened(job) as engine:
        for consumer in _consumers(engine, job):
            for call in path.calls:
                await _carried_on(path, consumer, call)
            await engine.tool_results(consumer.message, user_id="u", close_open=True)
            await consumer.confirm()
        return Said(problems=tuple(await _looked(engine, job, ended=True)))


async def _carried_on(path: Path, consumer: Consumer, call: ToolCall) -> None:
    """Make the same call again, and go on with it from where it stands."""
    await consumer.execute(call)
    for _ in range(4):
        row = await consumer.engine.attempt(consumer.key(call), user_id="u")
        assert row is not None
        match row.attempt.phase:
            case "paused:awaiting_approval" if path.approve is not None:
                await consumer.decide(call, path.approve, path.edited)
            case "approved":
                await consumer.resume(call)
            case "paused:requires_client_execution" | "paused:requires_input":
                await consumer.submit(call, "done")
            case _:
                return


async def _looked(engine: Engine, job: Job, ended: bool = False) -> list[str]:
    path = path_named(job.path)
    effects = effects_in(File(job.effects).read_text())
    problems = []
    for consumer in _consumers(engine, job):
        told = await engine.tool_results(consumer.message, user_id="u", family="mcp", calls=path.calls)
        for call, message in zip(path.calls, told, strict=True):
            key = consumer.key(call)
            stream = [record.event async for record in engine.log.read_stream(key, user_id="u")]
            sight = Sight(
                row=await engine.attempt(key, user_id="u"),
                stream=tuple(type(event).__name__ for event in stream),
                effects=tuple(effects.get(key, ())),
                told=message["content"][0]["text"],
                succeeds=not message["isError"],
            )
            problems += [f"{key}: {what}; {sight!r}" for what in faults_in(sight, path, call, ended)]
    return problems


async def compare(job: Job) -> Said:
    """Compare the whole log with its table, its seals, and with what all consumers were told."""
    async with _opened(job) as engine:
        report = await verify(engine.log)
        events = [record.event for record in await recorded_events(engine.log)]
    counted = Counter(event.id for event in events)
    told, confirmed = told_in(File(job.told).read_text())
    confirmed -= {event.message_id for event in events if isinstance(event, Confirmed)}
    problems = [
        *(str(problem) for problem in report.problems),
        *(f"event {name}, told to a consumer, is in the log {counted[name]} times" for name in told - set(counted)),
        *(f"event {name} is in the log {times} times" for name, times in counted.items() if times > 1),
        *(f"{turn} was confirmed, and is not" for turn in confirmed),
    ]
    return Said(problems=tuple(problems))
