"""Reconciling in the background of an engine: again and again, whatever happens to a round, and no longer than it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

import anyio
import pytest
from anyio.lowlevel import checkpoint

from engine import Engine, Settings
from events import LogUnavailable
from tests.engine.staging import proved, row_of
from tests.engine.stuck_calls import staged_call

__all__ = ()

pytestmark = pytest.mark.anyio

OFTEN = Settings(reconcile_interval=0.02)


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not condition():
            await checkpoint()


async def test_it_goes_on_by_itself(journal_url: str) -> None:
    async with Engine.open(journal_url, settings=OFTEN) as engine:
        for number in (1, 2):
            await staged_call(engine, "awaiting_approval", f"c{number}", wait=-1.0)
            await until(lambda number=number: engine.statistics().reconciled.closed == number)  # type: ignore[misc]
            assert (await row_of(engine, f"m:c{number}")).status == "denied"
        await until(lambda: engine.statistics().reconciled.done > 5)
        await proved(engine)


@pytest.mark.parametrize("error", [LogUnavailable("away"), RuntimeError("a bug")])
async def test_a_round_that_fails_is_not_the_last(
    sqlite_url: str, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    async with Engine.open(sqlite_url, settings=OFTEN) as engine:
        rounds = engine._runtime.rounds
        real, failing = rounds.now, True

        async def now() -> datetime:
            if failing:
                raise error
            return await real()

        with caplog.at_level(logging.WARNING, logger="calljournal.reconcile"):
            rounds.now = now
            await until(lambda: engine.statistics().reconciled.broken >= 3)
            failing = False
            await staged_call(engine, "awaiting_approval", "c1", wait=-1.0)
            await until(lambda: engine.statistics().reconciled.closed == 1)
        said = [record for record in caplog.records if record.name == "calljournal.reconcile"]
        assert str(error) in said[0].getMessage()
        # Where it is no outage, people must find it.
        assert bool(said[0].exc_info) == isinstance(error, RuntimeError)


async def test_what_cannot_be_closed_is_said_each_time(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    from tests.logs import tamper

    async with Engine.open(sqlite_url, settings=OFTEN) as engine:
        with caplog.at_level(logging.INFO, logger="calljournal.reconcile"):
            await staged_call(engine, "awaiting_approval", "fine", wait=-1.0)
            await until(lambda: engine.statistics().reconciled.closed == 1)
            await staged_call(engine, "executed", "other")
            await tamper(engine.log, "UPDATE tool_call_events SET data = '{' WHERE key = 'm:damaged'")
            await staged_call(engine, "awaiting_approval", "damaged", wait=0.2)
            await tamper(engine.log, "UPDATE tool_call_events SET data = '{' WHERE key = 'm:damaged'")
            await until(lambda: engine.statistics().reconciled.last.failing == 1)
        said = [record.getMessage() for record in caplog.records]
        assert "reconciled: 1 expired" in said
        await until(lambda: engine.statistics().reconciled.done > 3)


async def test_it_ends_with_its_engine(sqlite_url: str) -> None:
    async with Engine.open(sqlite_url, settings=OFTEN) as engine:
        await until(lambda: engine.statistics().reconciled.done > 0)
    done = engine.statistics().reconciled.done
    async with Engine.open(sqlite_url, settings=Settings(reconcile_interval=None)) as other:
        for _ in range(50):
            await checkpoint()
        assert other.statistics().reconciled.done == 0
    assert engine.statistics().reconciled.done == done


async def test_by_default_it_takes_its_time(sqlite_url: str) -> None:
    assert Settings().reconcile_interval == 60.0
    async with Engine.open(sqlite_url) as engine:
        await engine.reconcile(dry_run=True)
        assert engine.statistics().reconciled.done == 0
        await engine.reconcile()
        assert engine.statistics().reconciled.done == 1
        assert repr(engine._runtime.rounds) == "<Rounds 1 done, last: nothing is stuck>"
