"""The same call again: what is recorded of it is yielded, and nothing runs twice (DESIGN 6, Duplicates)."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from engine.flight import Flight
from engine.gate import Deny
from engine.lease import lease_alive
from engine.outcomes import denied, failed, verdict_event
from engine.proposal import Proposal
from engine.recorded import recorded_events
from engine.runtime import Runtime
from events.errors import Conflict, LogUnavailable, VersionConflict
from events.keys import duplicate_key, new_id, ordinal_key
from events.types import Failed, Proposed, StreamEvent
from projections.row import AttemptRow
from projections.rows import read_attempt

__all__ = ("enter",)

_RUNNING = "This call is running already, so it was not started a second time. Wait for its result."
_ORPHANED = "The worker that ran this call is gone; whether the call had its effect is not known."


class _NextOrdinal(msgspec.Struct, frozen=True):
    """The key belongs to another call."""


class _Again(msgspec.Struct, frozen=True):
    """The row has moved since it was read."""


async def enter(runtime: Runtime, flight: Flight, proposal: Proposal) -> list[StreamEvent]:
    """Append a proposal under the first key that is free for it, or find that the call is known already.

    Returns what is to be yielded. Unless ``flight.settled`` then, the tool is to run, and ``flight`` has its proposal.

    :raises LogUnavailable: if it cannot be written
    """
    base, ordinal = proposal.proposed.key, 1
    while True:
        proposed = replace(proposal.proposed, key=ordinal_key(base, ordinal))
        flight.proposed, flight.settled = proposed, False
        try:
            return await _open(runtime, flight, proposal)
        except VersionConflict:
            flight.settled = True
            row = await read_attempt(runtime.log, proposed.key, user_id=proposed.user_id)
        except LogUnavailable:
            flight.settled = True
            raise
        if row is None:
            raise LogUnavailable(f"call {proposed.key!r} is taken, and yet not to be found; run verify")
        known = await _known(runtime, flight, proposed, row)
        if isinstance(known, list):
            return known
        if isinstance(known, _NextOrdinal):
            ordinal += 1


async def _open(runtime: Runtime, flight: Flight, proposal: Proposal) -> list[StreamEvent]:
    proposed = flight.proposed
    closing = () if proposal.verdict is None else (verdict_event(proposed, proposal.verdict),)
    events = await runtime.journal.open(proposed, *closing)
    flight.settled = proposal.verdict is not None
    for event in events:
        runtime.telemetry.transition(event)
    return events


async def _known(
    runtime: Runtime, flight: Flight, proposed: Proposed, row: AttemptRow
) -> list[StreamEvent] | _NextOrdinal | _Again:
    if not _same_call(proposed, row):
        return _NextOrdinal()
    bare = proposed.message_id is None and proposed.run_id is None
    if row.status != "proposed":
        return _NextOrdinal() if bare else await _replay(runtime, flight, proposed)
    if row.gate in ("paused", "approved"):
        return await _replay(runtime, flight, proposed)
    if row.worker == runtime.worker or await lease_alive(runtime.log.store, row.worker):
        return await _refuse(runtime, flight, proposed)
    return await _orphan(runtime, flight, proposed, row, bare)


def _same_call(proposed: Proposed, row: AttemptRow) -> bool:
    return (proposed.call_id, proposed.message_id, proposed.run_id, proposed.digest) == (
        row.call_id,
        row.message_id,
        row.run_id,
        row.digest,
    )


async def _replay(runtime: Runtime, flight: Flight, proposed: Proposed) -> list[StreamEvent]:
    flight.settled = True
    return await recorded_events(runtime, proposed)


async def _refuse(runtime: Runtime, flight: Flight, proposed: Proposed) -> list[StreamEvent]:
    """Record a repetition of a running call under a key of its own, denied."""
    flight.settled = True
    number = 1
    while True:
        again = replace(proposed, id=new_id(), key=duplicate_key(proposed.key, number))
        try:
            return await runtime.journal.open(again, denied(again, Deny("duplicate", "duplicate", _RUNNING)))
        except VersionConflict:
            number += 1


async def _orphan(
    runtime: Runtime, flight: Flight, proposed: Proposed, row: AttemptRow, bare: bool
) -> list[StreamEvent] | _Again:
    """Deal with a call whose worker died: close it, or, if it is idempotent, run it under its own proposal."""
    stream = [record.event async for record in runtime.log.read_stream(proposed.key, user_id=proposed.user_id)]
    opening = stream[0]
    assert isinstance(opening, Proposed)
    if row.idempotent and row.gate == "open" and not bare:
        flight.proposed, flight.version, flight.settled = opening, row.version, False
        return [opening]
    closing = failed(opening, "orphaned", _ORPHANED)
    try:
        records = await runtime.log.append(opening.key, [closing], row.version, opening.user_id, dead_worker=row.worker)
    except Conflict:
        return _Again()
    if bare:
        return _Again()
    flight.settled = True
    closed = records[0].event
    return [opening, closed] if isinstance(closed, Failed) else [opening]
