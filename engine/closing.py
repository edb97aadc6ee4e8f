"""Closing a call that is stuck: one append, by which exactly one of several reconciliations does it."""

from __future__ import annotations

from datetime import UTC, datetime
from time import time_ns
from typing import Final

from engine.decisions import expired
from engine.outcomes import failed, orphaned
from engine.runtime import Runtime
from engine.standing import Standing, stand
from engine.verdicts import Finding
from events.errors import Conflict, NotFound
from events.types import Denied, Failed

__all__ = ("close_stuck",)

_TIMED_OUT: Final = "No result came back for this call before its deadline; it may have had its effect."


async def close_stuck(runtime: Runtime, finding: Finding) -> bool:
    """Close a call as it was found; False: somebody else has moved it on meanwhile, or its worker is alive.

    :raises LogUnavailable: if its stream cannot be read, or its end not be written
    """
    suspect, caller, began = finding.suspect, runtime.telemetry.caller(), time_ns()
    try:
        standing = await stand(runtime, suspect.key, suspect.user_id)
        if standing.row.version != suspect.version:
            return False
        dead_worker = suspect.worker if finding.kind == "orphaned" else None
        end = _end(finding, standing)
        (closed,) = await runtime.journal.step(standing.proposed, [end], suspect.version, dead_worker)
    except (Conflict, NotFound):
        return False
    if isinstance(closed, Denied):
        waited = (datetime.now(UTC) - suspect.updated_at).total_seconds()
        runtime.telemetry.decided(standing.proposed, closed, max(waited, 0.0), caller, began)
    return True


def _end(finding: Finding, standing: Standing) -> Denied | Failed:
    match finding.kind:
        case "expired":
            return expired(standing)
        case "timed_out":
            return failed(standing.proposed, "timeout", _TIMED_OUT)
        case _:
            return orphaned(standing.proposed)
