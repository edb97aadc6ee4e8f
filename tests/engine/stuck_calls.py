"""Calls that are stuck in every way there is, workers dead and alive, and time that moves by hand."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import delete, insert, update

from engine import Engine
from engine.lease import Lease
from engine.stuck import ReconcileReport, StuckCall
from events import Approved, Confirmed, Denied, Executed, Failed, Paused, Proposed, Resumed, ToolEvent
from events.schema import leases
from tests.events.appends import follow, proposed

__all__ = (
    "DAY",
    "HOUR",
    "STATES",
    "Clock",
    "end_lease",
    "give_lease",
    "hold_long",
    "kinds",
    "later",
    "lease_of",
    "only",
    "staged_call",
    "take_lease",
)

HOUR = 3600.0
DAY = 86_400.0
STATES = (
    "open",
    "claimed",
    "awaiting_approval",
    "requires_client_execution",
    "requires_input",
    "approved",
    "executed",
    "confirmed",
    "failed",
    "denied",
)


def kinds(report: ReconcileReport) -> dict[str, str]:
    """Return what was found, by key."""
    return {entry.key: entry.kind for entry in report.calls}


def only(report: ReconcileReport) -> StuckCall:
    """Return the one thing that was found."""
    (entry,) = report.calls
    return entry


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = time.monotonic()

    def __call__(self) -> float:
        return self.now

    def pass_(self, seconds: float) -> None:
        """Let time go by."""
        self.now += seconds


def lease_of(engine: Engine) -> Lease:
    """Return an engine's own lease."""
    lease = engine._runtime.rounds.lease
    assert isinstance(lease, Lease)
    return lease


async def hold_long(engine: Engine, clock: Clock | None = None) -> Clock:
    """Let an engine hold its lease for a whole period, renewing it as its heartbeat does; return its clock."""
    lease, clock = lease_of(engine), clock or Clock()
    lease.clock = clock
    await lease.renew()
    for _ in range(3):
        clock.pass_(10)
        await lease.renew()
    return clock


def later(engine: Engine, seconds: float) -> None:
    """Let the engine's reconciliations believe that it is later by so much than it is."""

    async def now() -> datetime:
        return datetime.now(UTC) + timedelta(seconds=seconds)

    engine._runtime.rounds.now = now


async def give_lease(engine: Engine, worker: str, seconds: float = 30.0) -> None:
    """Write a worker's lease: it ends so many seconds from now (or did, if that is negative)."""
    moment = datetime.now(UTC)
    row = {"worker": worker, "started_at": moment, "expires_at": moment + timedelta(seconds=seconds)}
    await engine.log.store.write([insert(leases).values(row)])


async def end_lease(engine: Engine, worker: str, ago: float = 1.0) -> None:
    """Let a worker's lease have ended so many seconds ago, as if it had been killed."""
    ended = datetime.now(UTC) - timedelta(seconds=ago)
    await engine.log.store.write([update(leases).where(leases.c.worker == worker).values(expires_at=ended)])


async def take_lease(engine: Engine, worker: str) -> None:
    """Remove a worker's lease, as if it had given it up."""
    await engine.log.store.write([delete(leases).where(leases.c.worker == worker)])


async def staged_call(engine: Engine, state: str, call_id: str, *, wait: float | None = 7 * DAY, **facts: Any) -> str:
    """Append a call that stands so, and return its key.

    :param wait: seconds for which its pause lasts; None: for ever
    :param facts: fields of its proposal; ``worker`` is who runs it where it is claimed, too
    """
    first = proposed(call_id, **facts)
    events = [first, *_life(state, first, None if wait is None else datetime.now(UTC) + timedelta(seconds=wait))]
    for version, event in enumerate(events):
        await engine.log.append(first.key, [event], version, first.user_id)
    return first.key


def _life(state: str, first: Proposed, until: datetime | None) -> Sequence[ToolEvent]:
    ask = follow(Paused, first, pause_type="awaiting_approval", reason="ask", rule="r", expires_at=until)
    yes = follow(Approved, first, by="ada", digest=first.digest, fingerprint="f")
    result = follow(Executed, first, result="done")
    lives: dict[str, Sequence[ToolEvent]] = {
        "open": (),
        "claimed": (ask, yes, follow(Resumed, first, worker=first.worker)),
        "awaiting_approval": (ask,),
        "approved": (ask, yes),
        "executed": (result,),
        "confirmed": (result, follow(Confirmed, first)),
        "failed": (follow(Failed, first, kind="exception", message="boom"),),
        "denied": (follow(Denied, first, reason="headless", message="nobody"),),
    }
    if state in lives:
        return lives[state]
    return (follow(Paused, first, pause_type=state, reason="wait", expires_at=until),)
