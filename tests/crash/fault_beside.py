"""What goes on beside the consumer of a path: its own first call, or another worker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import anyio
from sqlalchemy import update

from engine import Engine, ToolCall
from events.schema import leases
from tests.crash.fault_consumer import Consumer
from tests.crash.fault_stage import ROWS, Stage

__all__ = ("declare_dead", "first_running", "rival")


async def declare_dead(through: Engine, *workers: str) -> None:
    """Let the leases of these workers be over; without a name, of all but the engine's own."""
    own = through.statistics().worker
    gone = leases.c.worker.in_(workers) if workers else leases.c.worker != own
    past = datetime.now(UTC) - timedelta(seconds=1)
    await through.log.store.write([update(leases).where(gone).values(expires_at=past)])


@asynccontextmanager
async def _beside(work: Callable[[], Awaitable[object]], stage: Stage) -> AsyncIterator[None]:
    async def finishing() -> None:
        await work()
        stage.finished.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(finishing)
        yield
        # The consumer may have been struck before it came so far.
        stage.released.set()


@asynccontextmanager
async def first_running(consumer: Consumer, stage: Stage, call: ToolCall, _url: str) -> AsyncIterator[None]:
    """Have the call running already when the consumer makes it."""

    async def first() -> None:
        await consumer.execute(call)

    async with _beside(first, stage):
        await stage.wait_held(1)
        yield


@asynccontextmanager
async def rival(consumer: Consumer, stage: Stage, call: ToolCall, url: str) -> AsyncIterator[None]:
    """While the consumer's tool is held, let another worker find its worker dead and close the call."""
    elsewhere = Stage(stage.effects)

    async def closing() -> None:
        await stage.wait_held(1)
        await declare_dead(engine, consumer.engine.statistics().worker)
        await Consumer(engine, consumer.message, consumer.told).execute(call)
        stage.released.set()

    async with Engine.open(url, rows=ROWS, tools=elsewhere.tools()) as engine, anyio.create_task_group() as tasks:
        tasks.start_soon(closing)
        yield
        tasks.cancel_scope.cancel()
