"""An open call that is taken over has no claim of its own: it must have ended before it would be closed as orphaned."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from engine import Limits, Settings
from events import Executed, Failed
from tests.engine.staging import call, events_of, proved, staged_engine, stream_of, tool_of
from tests.engine.stuck_calls import end_lease, hold_long, later, only, take_lease

__all__ = ()

pytestmark = pytest.mark.anyio

HOUR = 3600.0


class Hanging:
    """A tool that is held open in its first run."""

    def __init__(self) -> None:
        self.runs = 0
        self.held = anyio.Event()

    async def run(self) -> str:
        self.runs += 1
        if self.runs == 1:
            self.held.set()
            await anyio.sleep_forever()
        return "done"


@pytest.mark.parametrize(
    ("timeout", "within", "late", "taken"),
    [
        (120.0, HOUR, 0.0, True),
        (120.0, HOUR, HOUR - 155, True),
        (120.0, HOUR, HOUR - 145, False),
        (2 * HOUR, HOUR, 0.0, False),
        (2 * HOUR, 3 * HOUR, 0.0, True),
        (120.0, 0.0, 0.0, False),
    ],
)
async def test_it_is_taken_over_only_if_there_is_time(
    journal_url: str, timeout: float, within: float, late: float, taken: bool
) -> None:
    hanging = Hanging()
    tool = tool_of(hanging.run, idempotent=True, timeout=timeout)
    settings = Settings(limits=Limits(resume_within=within), on_journal_failure="refuse")
    async with (
        staged_engine(journal_url, tool, settings=settings) as one,
        staged_engine(journal_url, tool, settings=settings) as two,
    ):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(events_of, one, call())
            await hanging.held.wait()
            await end_lease(one, one.statistics().worker, ago=0.01)
            later(two, late)
            # What the reconciler leaves alone is what may be taken over, and no more.
            await hold_long(two)
            left = only(await two.reconcile(dry_run=True)).kind
            opening, outcome = await events_of(two, call())
            tasks.cancel_scope.cancel()
        assert opening == (await stream_of(two))[0]
        if taken:
            assert left == "resumable"
            assert isinstance(outcome, Executed)
        else:
            assert isinstance(outcome, Failed)
            assert outcome.kind == "orphaned"
        assert hanging.runs == 1 + taken
        await proved(two)


async def test_a_lease_that_was_given_up_ended_with_the_calls_last_event(journal_url: str) -> None:
    hanging = Hanging()
    tool: Any = tool_of(hanging.run, idempotent=True)
    async with staged_engine(journal_url, tool) as one, staged_engine(journal_url, tool) as two:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(events_of, one, call())
            await hanging.held.wait()
            await take_lease(one, one.statistics().worker)
            later(two, HOUR)
            failed = (await events_of(two, call()))[-1]
            tasks.cancel_scope.cancel()
        assert isinstance(failed, Failed)
        assert failed.kind == "orphaned"
        assert hanging.runs == 1
