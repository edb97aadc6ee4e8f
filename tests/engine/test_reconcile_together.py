"""``reconcile`` beside others: workers that live, other reconciliations, people who decide, and a cancellation."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest

from engine import CallContext, Engine, Settings
from engine.stuck import ReconcileReport
from events import Executed
from tests.engine.cancelling import CANCELLERS, cut_at
from tests.engine.gating import APPROVED_FIRST, paused
from tests.engine.staging import call, events_of, proved, row_of, staged, staged_engine, stream_of, tool_of
from tests.engine.stuck_calls import DAY, end_lease, give_lease, hold_long, kinds, later, lease_of, only, staged_call

__all__ = ()

pytestmark = pytest.mark.anyio


async def test_a_call_that_lives_is_never_declared_dead(journal_url: str) -> None:
    """However long it runs; and while its worker renews its lease, whatever else is over."""
    held, free = anyio.Event(), anyio.Event()

    async def slow() -> str:
        held.set()
        await free.wait()
        return "done"

    async with staged(journal_url, slow) as one, staged(journal_url, slow) as two:
        told: list[Any] = []

        async def run() -> None:
            told.extend(await events_of(one, call()))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await held.wait()
            for engine in (one, two):
                await hold_long(engine)
                later(engine, 100 * DAY)
                assert (await engine.reconcile()).calls == ()
            free.set()
        assert isinstance(told[-1], Executed)
        await proved(one)


async def test_a_worker_that_comes_back_in_between_is_alive(journal_url: str) -> None:
    """Its lease is looked at again in the transaction that would close its call."""
    async with Engine.open(journal_url) as engine:
        await give_lease(engine, "w", -1.0)
        await staged_call(engine, "open", "c1", worker="w")
        await hold_long(engine)
        lease = lease_of(engine)

        class Reviving:
            """The lease; once the page has been read, the worker renews its own."""

            def __init__(self) -> None:
                self.asked = 0

            async def assured(self) -> float:
                self.asked += 1
                if self.asked == 2:
                    await end_lease(engine, "w", ago=-30.0)
                return await lease.assured()

        engine._runtime.rounds.lease = Reviving()
        report = await engine.reconcile()
        assert (report.counts.closed, report.counts.moved, report.calls) == (0, 1, ())
        assert (await row_of(engine)).status == "proposed"
        await end_lease(engine, "w")
        assert only(await engine.reconcile()).kind == "orphaned"
        await proved(engine)


async def test_nobody_is_declared_dead_by_a_worker_that_is_too_young(journal_url: str) -> None:
    async with Engine.open(journal_url) as engine:
        await staged_call(engine, "open", "c1", worker="gone")
        await staged_call(engine, "awaiting_approval", "c2", wait=-1.0)
        report = await engine.reconcile()
        assert kinds(report) == {"m:c1": "held", "m:c2": "expired"}
        assert 0 < report.steady_in <= 30
        assert "looks gone" in report.of("held")[0].done
        assert (await row_of(engine)).status == "proposed"
        clock = await hold_long(engine)
        assert only(await engine.reconcile()).kind == "orphaned"
        # And for as long as it goes on.
        clock.pass_(10)
        await staged_call(engine, "claimed", "c3", worker="gone")
        assert only(await engine.reconcile()).kind == "orphaned"


async def test_two_reconciliations_at_once_close_each_call_once(journal_url: str) -> None:
    async with AsyncExitStack() as stack:
        engines = [await stack.enter_async_context(Engine.open(journal_url)) for _ in range(3)]
        for number in range(20):
            await staged_call(engines[0], "open", f"o{number}", worker="gone")
            await staged_call(engines[0], "awaiting_approval", f"a{number}", wait=-1.0)
        for engine in engines:
            await hold_long(engine)
        reports: list[ReconcileReport] = []

        async def run(engine: Engine) -> None:
            reports.append(await engine.reconcile())

        async with anyio.create_task_group() as tasks:
            for engine in engines:
                tasks.start_soon(run, engine)
        assert sum(report.counts.closed for report in reports) == 40
        closed = [entry.key for report in reports for entry in report.calls]
        assert len(closed) == len(set(closed)) == 40
        assert all(report.counts.failing == 0 for report in reports)
        for key in closed:
            kinds_of_stream = [type(event).__name__ for event in await stream_of(engines[0], key)]
            assert len([kind for kind in kinds_of_stream if kind in ("Failed", "Denied")]) == 1
        await proved(engines[0])


async def test_a_decision_at_the_same_time_is_one_or_the_other(journal_url: str) -> None:
    async def never() -> None:
        raise AssertionError("nobody resumes it")

    tool = tool_of(never, metadata=APPROVED_FIRST)
    async with staged_engine(journal_url, tool) as one, staged_engine(journal_url, tool) as two:
        for number in range(10):
            turn = CallContext(user_id="u", message_id=f"m{number}")
            await paused(one, call(), turn)
        later(two, 8 * DAY)
        decided: list[Any] = []

        async def decide(number: int) -> None:
            try:
                decided.append(await one.decide(f"m{number}:c1", approve=True, by="ada", user_id="u"))
            except Exception as error:
                decided.append(error)

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(decide, number)
            tasks.start_soon(two.reconcile)
        report = await two.reconcile()
        assert report.counts.failing == 0
        for number in range(10):
            row = await row_of(one, f"m{number}:c1")
            # Whatever came first: past its deadline, the approved one is closed too.
            assert row.status == "denied"
        await proved(one)


@pytest.fixture(params=[*CANCELLERS])
def canceller(request: pytest.FixtureRequest, anyio_backend_name: str) -> Any:
    """A way to cancel; asyncio's own only there."""
    return CANCELLERS["scope" if anyio_backend_name == "trio" else request.param]


async def test_cancelled_anywhere_what_was_closed_is_closed(sqlite_url: str, canceller: Any) -> None:
    async with Engine.open(sqlite_url, settings=Settings(reconcile_interval=None)) as engine:
        clock = await hold_long(engine)

        async def work(at: int) -> None:
            await staged_call(engine, "open", f"o{at}", worker="gone")
            await staged_call(engine, "awaiting_approval", f"a{at}", wait=-1.0)
            await engine.reconcile()

        async def check(at: int) -> None:
            clock.pass_(1)
            await engine.reconcile()
            for call_id in (f"o{at}", f"a{at}"):
                row = await engine.attempt(f"m:{call_id}", user_id="u")
                assert row is None or row.status != "proposed"

        assert await cut_at(canceller, work, check) > 10
        await proved(engine)
