"""An approver of a swarm: looks through what waits, decides, resumes and answers, at the same time as others do.

``python -m tests.crash.swarm_approver URL BACKEND``. It ends when its input does.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from random import Random

import anyio
import anyio.to_thread

from engine import CallContext, Engine
from events import Approved, Refused
from projections import AttemptRow
from projections.listing import Wanted, list_attempts
from tests.crash.swarm import LEASE, LEFT_ALONE
from tests.crash.swarm_process import Notes, joined

__all__ = ("main",)

AT_ONCE = 16
EVERY = Wanted(user_id=None, every_tenant=True, status="proposed")


class Approver:
    """Somebody who sees to all calls that wait."""

    def __init__(self, engine: Engine, notes: Notes) -> None:
        self._engine = engine
        self._notes = notes
        self._luck = Random()
        self._places = anyio.Semaphore(AT_ONCE)

    async def look_through(self) -> None:
        """See to every call that waits now."""
        async with anyio.create_task_group() as tasks:
            async for row in list_attempts(self._engine.log, EVERY):
                if Random(row.key).random() >= LEFT_ALONE:
                    await self._places.acquire()
                    tasks.start_soon(self._see_to, row)

    async def _see_to(self, row: AttemptRow) -> None:
        context = CallContext(user_id=row.user_id)
        try:
            match row.attempt.phase:
                case "paused:awaiting_approval":
                    await self._decide(row, context)
                case "paused:requires_client_execution" | "paused:requires_input":
                    await self._notes.follow(self._engine.submit_result(row.key, {"by": "somebody"}, context))
                case "approved":
                    await self._notes.follow(self._engine.resume(row.key, context))
                case "claimed" if row.idempotent and _old(row):
                    await self._notes.follow(self._engine.resume(row.key, context))
                case _:
                    pass
        finally:
            self._places.release()

    async def _decide(self, row: AttemptRow, context: CallContext) -> None:
        luck = self._luck.random()
        edited = {"n": -row.arguments["n"]} if luck < 0.15 else None
        with suppress(Refused):
            decision = await self._engine.decide(
                row.key, approve=luck < 0.8, by=repr(self), user_id=row.user_id, arguments=edited
            )
            self._notes.note(decision)
            if isinstance(decision, Approved) and self._luck.random() < 0.5:
                await self._notes.follow(self._engine.resume(row.key, context))


def _old(row: AttemptRow) -> bool:
    return datetime.now(UTC) - row.updated_at > timedelta(seconds=LEASE)


async def main(url: str) -> None:
    async with joined(url) as (engine, notes), anyio.create_task_group() as tasks:
        tasks.start_soon(_look_through_for_ever, Approver(engine, notes))
        await anyio.to_thread.run_sync(sys.stdin.read)
        tasks.cancel_scope.cancel()


async def _look_through_for_ever(approver: Approver) -> None:
    while True:
        await approver.look_through()
        await anyio.sleep(0.05)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], backend=sys.argv[2])
