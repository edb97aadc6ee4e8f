"""What each process of the fault matrix does: walk a path and be struck, or die in a tool for others to find."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from types import MappingProxyType
from typing import Any

import anyio

from engine import Engine
from tests.crash.fault_awaits import struck
from tests.crash.fault_beside import declare_dead
from tests.crash.fault_consumer import Consumer
from tests.crash.fault_job import Job, Said, Task
from tests.crash.fault_paths import path_named
from tests.crash.fault_recovery import carry_on, compare, look, reconcile
from tests.crash.fault_stage import ROWS, Stage

__all__ = ("work",)


def work(job: Job) -> Said:
    """Do a job on an event loop of its own."""
    trio = job.backend == "trio"
    options: dict[str, Any] = {} if trio else {"use_uvloop": job.backend == "uvloop"}
    return anyio.run(_TASKS[job.task], job, backend="trio" if trio else "asyncio", backend_options=options)


async def _walk(job: Job) -> Said:
    path = path_named(job.path)
    stage = Stage(job.effects, path.holds, path.gates)
    async with Engine.open(job.url, rows=ROWS, tools=stage.tools(), settings=job.settings(path.limits)) as engine:
        consumer = Consumer(engine, job.turn, job.told, path.headless)
        beside: AbstractAsyncContextManager[None] = nullcontext()
        if path.beside is not None:
            beside = path.beside(consumer, stage, path.calls[0], job.url)
        async with beside:
            driven = await struck(partial(path.walk, consumer, stage, path), job.fault, job.at)
        problems = [line for call in path.calls for line in await _in_flight(engine, consumer.key(call))]
    return Said(awaits=driven.count, reached=driven.reached, problems=tuple(problems))


async def _in_flight(engine: Engine, key: str) -> list[str]:
    """Tell whether this worker, whose consumer has gone, has left a call running."""
    row = await engine.attempt(key, user_id="u")
    if row is None or row.attempt.phase not in ("open", "claimed") or row.worker != engine.statistics().worker:
        return []
    return [f"{key} is in flight, and its consumer has gone: {row!r}"]


async def _stage(job: Job) -> Said:
    """Die with the tool of every turn at work, and let the lease be over."""
    path = path_named(job.path)
    assert path.staged is not None
    stage = Stage(job.effects, holds=True)
    async with (
        Engine.open(job.url, rows=ROWS, tools=stage.tools(), settings=job.settings(path.limits)) as engine,
        anyio.create_task_group() as tasks,
    ):
        for turn in job.turns:
            tasks.start_soon(path.staged, Consumer(engine, turn, job.told, path.headless), stage, path)
        await stage.wait_held(len(job.turns))
        await declare_dead(engine, engine.statistics().worker)
        os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("it lives")


_TASKS: Mapping[Task, Callable[[Job], Coroutine[Any, Any, Said]]] = MappingProxyType(
    {
        "walk": _walk,
        "stage": _stage,
        "look": look,
        "carry on": carry_on,
        "reconcile": reconcile,
        "compare": compare,
    }
)
