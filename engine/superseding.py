"""Moving on without a decision is a decision: what still waits in a turn is closed (DESIGN 6, Pause and resume)."""

from __future__ import annotations

from collections.abc import Sequence

from engine.gate import Deny
from engine.lease import lease_alive
from engine.outcomes import denied, failed, orphaned
from engine.recorded import recorded_events
from engine.runtime import Runtime
from events.errors import Conflict
from events.types import Denied, Failed, Proposed
from projections.row import AttemptRow

__all__ = ("close_waiting",)

_SUPERSEDED = "This call was not run: the conversation went on before anybody decided on it."
_MAY_HAVE_RUN = "No result came back before the conversation went on; the call may have had its effect."


async def close_waiting(runtime: Runtime, rows: Sequence[AttemptRow]) -> None:
    """Close every call that waits: for approval (or approved and not run) as denied, for a client or input as failed.

    A call that runs under a live worker stays; one whose worker is gone is closed as orphaned. A call that moves while
    it is being closed stays as it then is.

    :raises LogUnavailable: if it cannot be written
    """
    for row in rows:
        if row.status == "proposed":
            await _close(runtime, row)


async def _close(runtime: Runtime, row: AttemptRow) -> None:
    opening = (await recorded_events(runtime.log, row.key, row.user_id))[0]
    assert isinstance(opening, Proposed)
    event: Denied | Failed
    dead_worker = None
    if row.gate == "approved" or row.pause_type == "awaiting_approval":
        event = denied(opening, Deny("superseded", "superseded", _SUPERSEDED))
    elif row.gate == "paused":
        event = failed(opening, "cancelled", _MAY_HAVE_RUN)
    elif row.worker == runtime.worker or await lease_alive(runtime.log.store, row.worker):
        return
    else:
        event, dead_worker = orphaned(opening), row.worker
    try:
        await runtime.log.append(row.key, [event], row.version, row.user_id, dead_worker=dead_worker)
    except Conflict:
        return
