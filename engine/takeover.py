"""Taking over: an idempotent call that a dead worker had claimed is run again, under the same key."""

from __future__ import annotations

from datetime import timedelta

from engine.claim import append_at, claim_and_run
from engine.context import CallContext
from engine.definition import Definition, definition_of
from engine.flight import Flight
from engine.lease import lease_alive, lease_end
from engine.outcomes import orphaned, resumed
from engine.runtime import Runtime
from engine.standing import Standing, impossible, stand
from engine.stopping import stopped_now
from engine.verdicts import takeover_end
from events.errors import Conflict
from events.types import Proposed, StreamEvent
from projections.row import AttemptRow

__all__ = ("ends_in_time", "reclaim", "take_over")


async def take_over(runtime: Runtime, standing: Standing, context: CallContext) -> StreamEvent:
    """Run a claimed call again whose worker died; what may not be run again is closed as orphaned.

    :raises Refused: if its worker lives, it is not idempotent, or somebody else was faster
    :raises LogUnavailable: if the claim cannot be written (nothing ran), or the outcome
    """
    row = standing.row
    own = row.worker == runtime.worker
    if runtime.flights.another(Flight(standing.proposed)) if own else await lease_alive(runtime.log.store, row.worker):
        raise impossible(standing, "resumed", "a live worker runs it")
    if not row.idempotent:
        raise impossible(standing, "resumed", "its worker is gone, and it may have had its effect; run reconcile")
    definition = await _harmless(runtime, standing)
    if definition is None:
        closing = orphaned(standing.proposed)
        return await append_at(runtime, standing, closing, dead_worker=_dead_worker(runtime, standing))
    claim = resumed(standing.proposed, runtime.worker, takeover=True)
    return await claim_and_run(runtime, standing, definition, context, claim, _dead_worker(runtime, standing))


async def reclaim(runtime: Runtime, flight: Flight) -> Proposed | None:
    """Claim for a flight what a dead worker had claimed, for the same call was made again; return its proposal.

    None: it may not be run again, or has moved meanwhile; then nothing was appended.

    :raises LogUnavailable: if the claim cannot be written
    """
    standing = await stand(runtime, flight.proposed.key, flight.proposed.user_id)
    if standing.phase != "claimed" or not standing.row.idempotent or standing.row.late:
        return None
    if await _harmless(runtime, standing) is None:
        return None
    claim = resumed(standing.proposed, runtime.worker, takeover=True)
    flight.claimed(claim, standing.proposed, standing.row.version + 1)
    flight.request, flight.answer = standing.request, standing.answer
    try:
        await runtime.journal.step(standing.proposed, [claim], standing.row.version, _dead_worker(runtime, standing))
    except Conflict:
        flight.settled = True
        return None
    return standing.opening


def _dead_worker(runtime: Runtime, standing: Standing) -> str | None:
    """Return whose lease must be over; of its own calls a worker knows itself that they do not run any more."""
    return None if standing.row.worker == runtime.worker else standing.row.worker


async def _harmless(runtime: Runtime, standing: Standing) -> Definition | None:
    """Return a call's action if it is still the one that was allowed, is idempotent, and is not forbidden by now."""
    definition = await definition_of(runtime, standing.proposed)
    allowed = standing.row.fingerprint if standing.approved is None else standing.approved.fingerprint
    if not isinstance(definition, Definition) or not definition.action.idempotent or definition.fingerprint != allowed:
        return None
    return definition if await stopped_now(runtime, standing, definition) is None else None


async def ends_in_time(runtime: Runtime, row: AttemptRow, timeout: float) -> bool:
    """Return whether an open call of a dead worker, run again from now on, ends before it is closed as orphaned.

    Taken over, it stays its dead worker's in the table: there is no claim of an open call.

    :param timeout: how long its tool may take, in seconds
    :raises LogUnavailable: if the database cannot be read
    """
    limits = runtime.settings.limits
    until = takeover_end(row.updated_at, await lease_end(runtime.log.store, row.worker), limits)
    return await runtime.rounds.now() + timedelta(seconds=timeout + limits.lease) <= until
