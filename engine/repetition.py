"""The same call again: what is recorded of it is yielded, and nothing runs twice (DESIGN 6, Duplicates)."""

from __future__ import annotations

from time import time_ns

import msgspec
from msgspec.structs import replace
from sqlalchemy import select

from engine.concealing import Concealing
from engine.consulting import consulted
from engine.flight import Flight
from engine.gate import Deny
from engine.lease import lease_alive
from engine.outcomes import denied, orphaned, verdict_event
from engine.proposal import Proposal
from engine.recorded import recorded_events
from engine.runtime import Runtime
from engine.takeover import ends_in_time, reclaim
from engine.telemetry import Caller
from engine.unwritten import RUNNING, enter_unwritten, recalled
from events.errors import Conflict, JournalError, LogUnavailable, VersionConflict
from events.keys import call_digest, duplicate_key, new_id, ordinal_key, tenant_column
from events.schema import streams
from events.types import Proposed, StreamEvent
from projections.row import AttemptRow
from projections.rows import read_attempt

__all__ = ("enter",)


class _NextOrdinal(msgspec.Struct, frozen=True):
    """The key belongs to another call."""


class _Again(msgspec.Struct, frozen=True):
    """The row has moved since it was read."""


async def enter(runtime: Runtime, flight: Flight, proposal: Proposal, caller: Caller) -> list[StreamEvent]:
    """Append a proposal under the first key that is free for it, or find that the call is known already.

    Returns what is to be yielded. Unless ``flight.settled`` then, the tool is to run, and ``flight`` has its proposal.

    Where it cannot be written, ``engine/unwritten.py`` decides, and what is yielded is in the spool.

    :raises LogUnavailable: if it cannot be written, or the operator's rules cannot be read, and it may not run then
    """
    plain = proposal
    try:
        proposal = await consulted(runtime, proposal)
    except LogUnavailable as outage:
        return await enter_unwritten(runtime, flight, plain, caller, outage)
    base, ordinal = proposal.proposed.key, 1
    while True:
        if runtime.spool is not None and await runtime.spool.may_hold():
            told = await recalled(runtime, flight, caller)
            if told is not None:
                return told
        try:
            return await _open(runtime, flight, proposal, caller)
        except VersionConflict:
            flight.settled = True
        except LogUnavailable as outage:
            return await enter_unwritten(runtime, flight, plain, caller, outage, ordinal)
        except JournalError:
            flight.settled = True
            raise
        row = await read_attempt(runtime.log, flight.proposed.key, flight.proposed.user_id)
        if row is None:
            raise LogUnavailable(f"call {flight.proposed.key!r} is taken, and yet not to be found; run verify")
        known = await _known(runtime, flight, proposal, row, caller)
        if isinstance(known, list):
            return known
        if isinstance(known, _NextOrdinal):
            ordinal += 1
        flight.restart(replace(proposal.proposed, key=ordinal_key(base, ordinal)))


async def _open(runtime: Runtime, flight: Flight, proposal: Proposal, caller: Caller) -> list[StreamEvent]:
    if proposal.verdict is None:
        return await runtime.journal.open(flight.proposed)
    began = time_ns()
    verdict = verdict_event(flight.proposed, proposal.verdict, runtime.settings.limits)
    events = await runtime.journal.open(flight.proposed, verdict)
    flight.settled = True
    runtime.telemetry.not_run(flight.proposed, events[-1], caller, began)
    return events


async def _known(
    runtime: Runtime, flight: Flight, proposal: Proposal, row: AttemptRow, caller: Caller
) -> list[StreamEvent] | _NextOrdinal | _Again:
    proposed = flight.proposed
    if not _same_call(proposed, row, proposal.hidden):
        return _NextOrdinal()
    # Without a turn to belong to, an equal call is no proof of a repetition: providers count ids from zero.
    bare = proposed.message_id is None and proposed.run_id is None
    phase = row.attempt.phase
    if phase is None and bare:
        return _NextOrdinal()
    if phase not in ("open", "claimed"):
        return await recorded_events(runtime.log, proposed.key, proposed.user_id)
    if await _is_running(runtime, flight, row):
        return await _refuse(runtime, proposed, caller)
    if not bare and phase == "claimed" and proposal.action is not None:
        opening = await reclaim(runtime, flight)
        if opening is not None:
            return [opening]
    if not bare and await _may_take_over(runtime, proposal, row):
        return await _take_over(runtime, flight, row, caller)
    return await _orphan(runtime, proposed, row, bare)


def _same_call(proposed: Proposed, row: AttemptRow, hidden: Concealing | None) -> bool:
    if (proposed.call_id, proposed.message_id, proposed.run_id) != (row.call_id, row.message_id, row.run_id):
        return False
    if proposed.digest == row.digest or hidden is None:
        return proposed.digest == row.digest
    # Kept under another master key, the same secrets look different.
    if row.digest != call_digest(row.tool_id, row.action_name, row.arguments):
        return False
    called, kept = (proposed.tool_id, proposed.action_name), (row.tool_id, row.action_name)
    return called == kept and hidden.is_same(proposed.arguments, row.arguments, proposed)


async def _is_running(runtime: Runtime, flight: Flight, row: AttemptRow) -> bool:
    if row.worker == runtime.worker:
        # Of its own calls a worker knows it outright: one whose end could not be written is not running any more.
        return runtime.flights.another(flight) is not None
    return await lease_alive(runtime.log.store, row.worker)


async def _refuse(runtime: Runtime, proposed: Proposed, caller: Caller) -> list[StreamEvent]:
    """Record a repetition of a running call under a key of its own, denied."""
    number, began = 1, time_ns()
    while True:
        again = replace(proposed, id=new_id(), key=duplicate_key(proposed.key, number))
        try:
            events = await runtime.journal.open(again, denied(again, Deny("duplicate", "duplicate", RUNNING)))
        except VersionConflict:
            number = max(number, await _repetitions(runtime, proposed)) + 1
            continue
        runtime.telemetry.not_run(again, events[-1], caller, began)
        return events


async def _repetitions(runtime: Runtime, proposed: Proposed) -> int:
    """Return the highest number that a refused repetition of this call has; an impatient caller makes many."""
    stem = duplicate_key(proposed.key, 1)[:-1]
    own = (streams.c.tenant == tenant_column(proposed.user_id)) & streams.c.key.startswith(stem, autoescape=True)
    between = (streams.c.key >= f"{stem}0") & (streams.c.key < f"{stem}:")
    rows = await runtime.log.store.read(select(streams.c.key).where(own & between))
    return max((int(tail) for (key,) in rows if (tail := key[len(stem) :]).isdecimal()), default=0)


async def _may_take_over(runtime: Runtime, proposal: Proposal, row: AttemptRow) -> bool:
    """Tell whether a dead worker's call may be run again, here and now: as harmless as it was then, and allowed."""
    action = proposal.action
    return (
        row.idempotent
        and row.attempt.phase == "open"
        and proposal.verdict is None
        and action is not None
        and action.idempotent
        and row.fingerprint == proposal.proposed.fingerprint
        and await ends_in_time(runtime, row, action.timeout)
    )


async def _opening(runtime: Runtime, proposed: Proposed) -> tuple[Proposed, int]:
    """Return a call's proposal as it was made, and its stream's version."""
    stream = [record async for record in runtime.log.read_stream(proposed.key, user_id=proposed.user_id)]
    if stream and isinstance(stream[0].event, Proposed):
        return stream[0].event, stream[-1].version
    raise LogUnavailable(f"the stream of call {proposed.key!r} does not begin with a proposal; run verify")


async def _take_over(runtime: Runtime, flight: Flight, row: AttemptRow, caller: Caller) -> list[StreamEvent] | _Again:
    """Run an idempotent call of a dead worker under its own proposal; in one worker, only once at a time."""
    if runtime.flights.runs_here(flight):
        return await _refuse(runtime, flight.proposed, caller)
    flight.started = True
    # Read after that, and after the lease was: the call may have ended since its row was read.
    opening, version = await _opening(runtime, flight.proposed)
    if version != row.version:
        return _Again()
    flight.proposed, flight.version, flight.settled = opening, version, False
    return [opening]


async def _orphan(runtime: Runtime, proposed: Proposed, row: AttemptRow, bare: bool) -> list[StreamEvent] | _Again:
    """Close the call of a dead worker: what it did is not known."""
    opening, _ = await _opening(runtime, proposed)
    closing = orphaned(opening)
    try:
        if row.worker == runtime.worker:
            closed = await runtime.journal.close(opening, closing, row.version)
        else:
            closed = await runtime.journal.orphan(opening, closing, row.version, row.worker)
    except Conflict:
        return _Again()
    return _Again() if bare else [opening, closed]
