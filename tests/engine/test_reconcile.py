"""``reconcile``: every state, age and lease; whoever lives is left alone, and each call is closed once."""

from __future__ import annotations

from contextlib import aclosing
from datetime import datetime
from typing import Any

import anyio
import pytest
from sqlalchemy import select

from engine import Engine, Limits, Settings
from events import Approved, Denied, Executed, Failed, LateOutcome, Paused, Proposed, ToolEvent
from events.schema import leases
from tests.engine.staging import CONTEXT, call, events_of, proved, row_of, staged, stream_of
from tests.engine.stuck_calls import (
    DAY,
    HOUR,
    STATES,
    end_lease,
    give_lease,
    hold_long,
    kinds,
    later,
    only,
    staged_call,
    take_lease,
)
from tests.events.appends import follow, proposed
from tests.logs import tamper

__all__ = ()

pytestmark = pytest.mark.anyio


LEASES = ("alive", "ended", "given up")


def expected(state: str, lease: str, idempotent: bool, age: float) -> str | None:
    """Return what is the matter with a call, by the words of the design."""
    if state in ("open", "claimed"):
        if lease == "alive":
            return None
        return "resumable" if idempotent and age < HOUR else "orphaned"
    if age >= 7 * DAY and state in ("awaiting_approval", "approved"):
        return "expired"
    if age >= 7 * DAY and state in ("requires_client_execution", "requires_input"):
        return "timed_out"
    if age >= HOUR and state in ("approved", "executed"):
        return "unresumed" if state == "approved" else "unconfirmed"
    return None


AFTER = {"orphaned": "failed", "timed_out": "failed", "expired": "denied"}
SAYS = {"orphaned": "not known", "timed_out": "may have had its effect", "expired": "deadline"}


@pytest.mark.parametrize("age", [0.0, HOUR + 60, 8 * DAY])
async def test_behaviour_119_every_state_lease_and_age(journal_url: str, age: float) -> None:
    async with Engine.open(journal_url) as engine:
        for lease in LEASES:
            await give_lease(engine, lease)
        wanted: dict[str, str | None] = {}
        before: dict[str, Any] = {}
        for state in STATES:
            for lease in LEASES:
                for idempotent in (True, False):
                    call_id = f"{state}-{lease}-{idempotent}"
                    key = await staged_call(engine, state, call_id, worker=lease, idempotent=idempotent)
                    wanted[key] = expected(state, lease, idempotent, age)
                    before[key] = await row_of(engine, key)
        await end_lease(engine, "ended")
        await take_lease(engine, "given up")
        await hold_long(engine)
        later(engine, age)
        dry = await engine.reconcile(dry_run=True)
        assert kinds(dry) == {key: kind for key, kind in wanted.items() if kind}
        assert {key: await row_of(engine, key) for key in wanted} == before
        report = await engine.reconcile()
        assert kinds(report) == kinds(dry)
        assert (report.counts, report.steady_in, report.problems) == (dry.counts, 0.0, ())
        for key, kind in wanted.items():
            row = await row_of(engine, key)
            if kind in AFTER:
                assert (row.status, row.gate) == (AFTER[kind], before[key].gate)
                assert SAYS[kind] in str(row.error)
                await check_closing(engine, key, kind)
            else:
                assert row == before[key]
        await proved(engine)
        again = await engine.reconcile()
        assert again.counts.closed == 0
        assert kinds(again) == {key: kind for key, kind in kinds(report).items() if kind not in AFTER}


async def check_closing(engine: Engine, key: str, kind: str) -> None:
    last = (await stream_of(engine, key))[-1]
    if kind == "expired":
        assert isinstance(last, Denied)
        assert (last.reason, last.by) == ("expired", None)
    else:
        assert isinstance(last, Failed)
        assert last.kind == ("orphaned" if kind == "orphaned" else "timeout")


async def test_a_report_can_be_read(journal_url: str) -> None:
    async with Engine.open(journal_url) as engine:
        assert str(await engine.reconcile()) == "nothing is stuck"
        await staged_call(engine, "open", "c1", worker="gone", user_id="alice")
        await hold_long(engine)
        later(engine, 90)
        report = await engine.reconcile(dry_run=True)
        assert str(report) == "1 orphaned (dry run: nothing was closed)"
        entry = only(report)
        assert (entry.user_id, entry.key, entry.tool_name, entry.action_name) == ("alice", "m:c1", "counter", "bump")
        assert (entry.state, entry.worker) == ("proposed/open", "gone")
        assert 90 <= entry.age < 120
        assert entry.done.startswith("would be closed as failed")
        assert isinstance(report.at, datetime)
        closed = only(await engine.reconcile())
        assert closed.done == entry.done.removeprefix("would be ")


async def test_an_approved_call_without_a_deadline_is_reported_for_ever(journal_url: str) -> None:
    async with Engine.open(journal_url) as engine:
        for state in STATES:
            await staged_call(engine, state, state, wait=None, worker=engine.statistics().worker)
        later(engine, 1000 * DAY)
        assert kinds(await engine.reconcile()) == {"m:approved": "unresumed", "m:executed": "unconfirmed"}


async def test_a_call_that_was_asked_about_twice_has_its_last_deadline(journal_url: str) -> None:
    async with Engine.open(journal_url) as engine:
        first = proposed("c1")
        asks = [
            follow(Paused, first, pause_type="awaiting_approval", reason="ask", expires_at=datetime.fromisoformat(day))
            for day in ("2020-01-01T00:00+00:00", "2999-01-01T00:00+00:00")
        ]
        yes = [follow(Approved, first, by="ada", digest=first.digest, fingerprint="f") for _ in asks]
        stream: list[ToolEvent] = [first, asks[0], yes[0], asks[1], yes[1]]
        for version, event in enumerate(stream):
            await engine.log.append(first.key, [event], version, "u")
        later(engine, 2 * HOUR)
        assert kinds(await engine.reconcile()) == {"m:c1": "unresumed"}


async def test_an_idempotent_call_is_left_to_a_takeover_first(journal_url: str) -> None:
    """From the moment its worker's lease ended; where nobody knows that, from its last event."""
    async with Engine.open(journal_url, settings=Settings(limits=Limits(resume_within=600.0))) as engine:
        await give_lease(engine, "crashed", 5.0)
        await staged_call(engine, "claimed", "c1", worker="crashed", idempotent=True)
        await staged_call(engine, "claimed", "c2", worker="given up", idempotent=True)
        await end_lease(engine, "crashed", ago=-300.0)
        later(engine, 0)
        await hold_long(engine)
        assert kinds(await engine.reconcile()) == {"m:c2": "resumable"}
        await end_lease(engine, "crashed", ago=0.001)
        later(engine, 590)
        report = await engine.reconcile()
        assert kinds(report) == {"m:c1": "resumable", "m:c2": "resumable"}
        assert "may be taken over" in report.calls[0].done
        later(engine, 601)
        assert kinds(await engine.reconcile()) == {"m:c1": "orphaned", "m:c2": "orphaned"}
        await proved(engine)


async def test_with_a_late_outcome_nothing_can_be_taken_over(journal_url: str) -> None:
    async with Engine.open(journal_url) as engine:
        first = proposed("c1", idempotent=True, worker="gone")
        outcome = follow(Executed, first, result="spoke too late")
        await engine.log.append("m:c1", [first], 0, "u")
        await engine.log.append("m:c1", [follow(LateOutcome, first, outcome=outcome, late=True)], 1, "u")
        await hold_long(engine)
        assert only(await engine.reconcile()).kind == "orphaned"
        await proved(engine)


async def test_tenants_are_told_apart_and_learn_nothing_of_each_other(journal_url: str) -> None:
    tenants = [None, "", "u", "v", "U", "u "]
    async with Engine.open(journal_url) as engine:
        await hold_long(engine)
        for tenant in tenants:
            await staged_call(engine, "open", "c1", user_id=tenant, worker="gone" if tenant != "v" else "alive")
        await give_lease(engine, "alive")
        report = await engine.reconcile()
        assert {entry.user_id for entry in report.calls} == {None, "", "u", "U", "u "}
        assert {entry.key for entry in report.calls} == {"m:c1"}
        for tenant in tenants:
            row = await row_of(engine, "m:c1", tenant)
            assert row.status == ("proposed" if tenant == "v" else "failed")
            events = [record.event async for record in engine.log.read(user_id=tenant)]
            assert {event.user_id for event in events} == {tenant}
            assert len(events) == (1 if tenant == "v" else 2)
        assert await engine.attempt("m:c1", user_id="w") is None
        await proved(engine)


async def test_a_list_is_bounded_and_its_counts_are_true(journal_url: str) -> None:
    async with Engine.open(journal_url, settings=Settings(limits=Limits(report_after=0.0))) as engine:
        await hold_long(engine)
        async with anyio.create_task_group() as tasks:
            for number in range(300):
                tasks.start_soon(_stage, engine, "open", f"o{number}")
                tasks.start_soon(_stage, engine, "executed", f"e{number}")
        later(engine, 1)
        report = await engine.reconcile()
        assert (report.counts.orphaned, report.counts.unconfirmed) == (300, 300)
        assert (len(report.of("orphaned")), len(report.of("unconfirmed"))) == (100, 100)
        assert (report.unlisted("orphaned"), report.unlisted("unconfirmed")) == (200, 200)
        ages = [entry.age for entry in report.of("unconfirmed")]
        assert ages == sorted(ages, reverse=True)
        await proved(engine)


async def _stage(engine: Engine, state: str, call_id: str) -> None:
    await staged_call(engine, state, call_id, worker="gone")


async def test_one_call_that_cannot_be_closed_holds_up_no_other(sqlite_url: str) -> None:
    async with Engine.open(sqlite_url) as engine:
        await hold_long(engine)
        for number in range(3):
            await staged_call(engine, "open", f"c{number}", worker="gone")
        await tamper(engine.log, "UPDATE tool_call_events SET data = '{' WHERE position = 2")
        report = await engine.reconcile()
        assert sorted(kinds(report)) == ["m:c0", "m:c2"]
        assert report.counts.failing == 1
        (problem,) = report.problems
        assert "call 'm:c1' is stuck and could not be closed" in problem
        assert engine.statistics().reconciled.last.failing == 1


async def test_a_damaged_pause_has_no_deadline(sqlite_url: str) -> None:
    async with Engine.open(sqlite_url) as engine:
        await staged_call(engine, "approved", "c1")
        await tamper(engine.log, "UPDATE tool_call_events SET data = '{' WHERE type = 'paused'")
        later(engine, 100 * DAY)
        assert only(await engine.reconcile()).kind == "unresumed"


async def test_an_orphan_is_closed_whatever_the_tool_of_it(journal_url: str) -> None:
    """End to end: an engine that died, another that knows nothing of its tools, and what the model is told."""
    held = anyio.Event()

    async def hang() -> None:
        held.set()
        await anyio.sleep_forever()

    async with Engine.open(journal_url) as other:
        async with staged(journal_url, hang) as one, anyio.create_task_group() as tasks:
            tasks.start_soon(events_of, one, call())
            await held.wait()
            await take_lease(one, one.statistics().worker)
            await hold_long(other)
            assert only(await other.reconcile()).kind == "orphaned"
            (told,) = await other.tool_results("m", user_id="u")
            assert "not known" in str(told)
            tasks.cancel_scope.cancel()
        row = await row_of(other)
        assert row.status == "failed"
        await proved(other)


async def test_a_worker_that_died_is_forgotten_in_the_end(journal_url: str) -> None:
    async with Engine.open(journal_url) as engine:
        for worker, ago in (("long ago", 8 * DAY), ("lately", 6 * DAY)):
            await give_lease(engine, worker, -ago)
        workers = select(leases.c.worker)
        own = engine.statistics().worker
        await engine.reconcile()
        assert len(await engine.log.store.read(workers)) == 3
        await hold_long(engine)
        await engine.reconcile(dry_run=True)
        assert len(await engine.log.store.read(workers)) == 3
        await engine.reconcile()
        assert {row[0] for row in await engine.log.store.read(workers)} == {"lately", own}


async def test_nothing_is_stuck_on_null() -> None:
    async with Engine.open("null://") as engine:
        async with aclosing(engine.execute(call(name="think"), CONTEXT)) as stream:
            assert isinstance(await anext(stream), Proposed)
        assert (await engine.reconcile()).calls == ()
