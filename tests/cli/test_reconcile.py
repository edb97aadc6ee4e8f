"""``calljournal reconcile``: what is stuck, said and closed from a shell."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from sqlalchemy import update

from engine import Engine, Limits, Settings
from engine.cli.reconcile import reconciled
from engine.stuck import ReconcileReport
from projections.schema import attempts
from tests.cli.command import Called, check_refused, environment
from tests.engine.stuck_calls import staged_call
from tests.logs import tamper

__all__ = ()

QUIET = Settings(reconcile_interval=None)


def stage(url: str, work: Callable[[Engine], Awaitable[Any]], settings: Settings = QUIET) -> Any:
    """Do something to the journal, as another process did."""

    async def run() -> Any:
        async with Engine.open(url, settings=settings) as engine:
            return await work(engine)

    return anyio.run(run)


@pytest.fixture
def stuck(called: Called, database_url: str) -> str:
    """A journal in which something of each kind is stuck, of two tenants, and more is not."""
    assert called("migrate", "--database", database_url).code == 0

    async def work(engine: Engine) -> None:
        await staged_call(engine, "open", "dead", worker="gone", user_id="alice")
        await staged_call(engine, "claimed", "again", worker="gone", idempotent=True)
        await staged_call(engine, "awaiting_approval", "late\x1b[2J", wait=-1.0, user_id=None)
        await staged_call(engine, "requires_client_execution", "silent", wait=-1.0)
        for state in ("awaiting_approval", "approved", "executed", "confirmed", "denied"):
            await staged_call(engine, state, state)
        # As if it were two hours ago.
        old = attempts.c.key.in_(["m:approved", "m:executed"])
        moment = update(attempts).where(old).values(updated_at=await _hours_ago(engine, 2))
        await engine.log.store.write([moment])

    stage(database_url, work)
    return database_url


async def _hours_ago(engine: Engine, hours: int) -> Any:
    return await engine._runtime.rounds.now() - timedelta(hours=hours)


FOUND = {
    "m:dead": "held",
    "m:again": "resumable",
    "m:late\x1b[2J": "expired",
    "m:silent": "timed_out",
    "m:approved": "unresumed",
    "m:executed": "unconfirmed",
}


def test_a_dry_run_says_and_does_nothing(called: Called, stuck: str) -> None:
    before = called("attempts", "--all-tenants", "--database", stuck).out
    said = called("reconcile", "--dry-run", "--database", stuck)
    assert (said.code, said.err) == (0, "")
    *calls, report = said.lines
    assert {call["key"]: call["kind"] for call in calls} == FOUND
    assert {call["key"]: call["user_id"] for call in calls} == {
        key: None if "late" in key else "alice" if "dead" in key else "u" for key in FOUND
    }
    late = next(call for call in calls if call["kind"] == "expired")
    assert (late["tool_name"], late["action_name"]) == ("counter", "bump")
    assert late["state"] == "proposed/paused (awaiting_approval)"
    assert late["age"] >= 0
    assert late["done"].startswith("would be closed")
    assert (report["kind"], report["dry_run"], report["counts"]["held"]) == ("report", True, 1)
    assert 0 < report["steady_in"] <= 30
    assert "calls" not in report
    assert called("attempts", "--all-tenants", "--database", stuck).out == before


def test_what_may_be_closed_at_once_is(called: Called, stuck: str) -> None:
    said = called("reconcile", "--no-wait", "--database", stuck)
    # What is held was not closed: the answer is no.
    assert (said.code, said.err) == (1, "")
    assert {line["key"]: line["kind"] for line in said.lines[:-1]} == FOUND
    left = {
        line["key"] for line in called("attempts", "--all-tenants", "--status", "proposed", "--database", stuck).lines
    }
    assert left == {"m:dead", "m:again", "m:approved", "m:awaiting_approval"}
    again = called("reconcile", "--no-wait", "--database", stuck)
    assert [line["kind"] for line in again.lines[:-1]] == ["unresumed", "held", "resumable", "unconfirmed"]


def test_for_people_it_is_lines_of_visible_text(called: Called, stuck: str) -> None:
    said = called("reconcile", "--dry-run", "--no-json", "--database", stuck)
    assert "\x1b[2J" not in said.out
    lines = said.out.splitlines()
    heads = [line for line in lines[:-1] if not line.startswith("  ")]
    assert [line.split("  ")[0] for line in heads] == [
        "expired",
        "timed out",
        "held",
        "resumable",
        "unresumed",
        "unconfirmed",
    ]
    assert heads[0].startswith("expired  m:late\\x1b[2J  counter.bump of calls without a user  proposed/paused")
    assert "m:dead  counter.bump of user alice  proposed/open for " in heads[2]
    assert "executed" in heads[5]
    assert "for 2h" in heads[5]
    assert "looks gone" in lines[lines.index(heads[2]) + 1]
    assert lines[-1] == (
        "1 expired, 1 timed out, 1 held, 1 resumable, 1 unresumed, 1 unconfirmed (dry run: nothing was closed)"
    )


def test_nothing_may_be_stuck(called: Called, database_url: str) -> None:
    assert called("migrate", "--database", database_url).code == 0
    said = called("reconcile", "--database", database_url, "--no-json")
    assert (said.code, said.out, said.err) == (0, "nothing is stuck\n", "")
    assert [line["kind"] for line in called("reconcile", "--database", database_url).lines] == ["report"]


def test_of_many_the_first_are_named_and_all_are_counted(called: Called, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/journal.db"

    async def work(engine: Engine) -> None:
        for number in range(103):
            await staged_call(engine, "awaiting_approval", f"c{number}", wait=-1.0)

    stage(url, work)
    said = called("reconcile", "--no-json", "--database", url)
    assert said.out.endswith("… and 3 more expired\n103 expired\n")


def test_it_waits_until_it_can_tell_who_is_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a lease of two seconds instead of thirty."""
    url = f"sqlite:///{tmp_path}/journal.db"

    async def work(engine: Engine) -> tuple[ReconcileReport, ReconcileReport]:
        await staged_call(engine, "open", "dead", worker="gone")
        await staged_call(engine, "awaiting_approval", "late", wait=-1.0)
        report = await reconciled(engine, dry_run=False, wait=True)
        return report, await reconciled(engine, dry_run=False, wait=True)

    first, second = stage(url, work, Settings(limits=Limits(lease=2.0), reconcile_interval=None))
    # Of both rounds together.
    assert {call.key: call.kind for call in first.calls} == {"m:late": "expired", "m:dead": "orphaned"}
    assert (first.counts.closed, first.counts.held, first.steady_in) == (2, 0, 0.0)
    assert str(second) == "nothing is stuck"
    assert "calljournal: 1 call of workers that look gone: making sure of it takes 2 s\n" in capsys.readouterr().err


def test_the_wait_can_be_interrupted(called: Called, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/journal.db"

    async def work(engine: Engine) -> None:
        await staged_call(engine, "open", "dead", worker="gone")
        await staged_call(engine, "awaiting_approval", "late", wait=-1.0)

    stage(url, work)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "engine.cli", "reconcile", "--database", url],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        assert "making sure of it takes 30 s" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    assert (process.returncode, out) == (130, "")
    assert err == "calljournal: interrupted; what was closed is recorded, and the same command goes on\n"
    states = {line["key"]: line["status"] for line in called("attempts", "--all-tenants", "--database", url).lines}
    assert states == {"m:dead": "proposed", "m:late": "denied"}


def test_what_cannot_be_closed_is_said(called: Called, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/journal.db"

    async def work(engine: Engine) -> None:
        await staged_call(engine, "awaiting_approval", "c1", wait=-1.0)
        await tamper(engine.log, "UPDATE tool_call_events SET data = '{'")

    stage(url, work)
    said = called("reconcile", "--database", url)
    assert said.code == 1
    assert said.err.startswith("calljournal: call 'm:c1' is stuck and could not be closed: ")
    assert said.lines[-1]["counts"]["failing"] == 1


def test_there_must_be_a_journal(called: Called) -> None:
    check_refused(called("reconcile", "--dry-run"), 3, "there is no journal")
