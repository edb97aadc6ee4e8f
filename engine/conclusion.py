"""From a tool's ending to its recorded outcome (steps 9 and 10): clean, guard, preview, status, append.

Once the tool has returned, its outcome is what is appended, whoever is cancelled meanwhile.
"""

from __future__ import annotations

from functools import partial

import anyio
from msgspec.structs import replace

from engine.artifacts_of import artifact_id_of, artifacts_of
from engine.contract import Tool
from engine.flight import Flight
from engine.guards import Guarded, Inspected, guard_result
from engine.outcomes import executed, failed
from engine.performance import Performance
from engine.recorded import recorded_events
from engine.results import finish_quickly, finish_result
from engine.running import Broke, Returned, describe_exception
from engine.runtime import Runtime
from events.errors import Conflict
from events.persistence import run_to_end
from events.types import Executed, Failed, StreamEvent

__all__ = ("conclude",)


async def conclude(runtime: Runtime, flight: Flight, performance: Performance) -> StreamEvent:
    """Append the outcome of a call and return it as recorded; a cancellation takes effect after that.

    Where somebody else closed the call meanwhile, its outcome is kept as LateOutcome, and what is recorded is returned.

    :raises LogUnavailable: if it cannot be written
    """
    run = performance.run
    if isinstance(run, Broke):
        return await _append(runtime, flight, failed(flight.proposed, run.kind, run.message, run.exception_type))
    quick = None
    if not runtime.guards and not _has_hooks(performance.tool):
        quick = finish_quickly(run.value, runtime.settings.limits)
    if quick is None:
        return await run_to_end(partial(_conclude_slowly, runtime, flight, performance, run))
    outcome = executed(flight.proposed, Guarded(quick, None), performance.resolved.buckets(), run.duration)
    return await _append(runtime, flight, outcome, quick.encoded)


def _has_hooks(tool: Tool | None) -> bool:
    return hasattr(tool, "get_artifact_id") or hasattr(tool, "get_artifacts")


async def _conclude_slowly(runtime: Runtime, flight: Flight, performance: Performance, run: Returned) -> StreamEvent:
    limits = runtime.settings.limits
    try:
        finished = await finish_result(run.value, limits)
    except Exception as error:
        # The tool's own iterator broke while it was listed.
        event = failed(flight.proposed, "exception", describe_exception(error), type(error).__name__)
        return await _append(runtime, flight, event)
    proposed = flight.proposed
    inspected = Inspected(
        user_id=proposed.user_id,
        tool_name=proposed.tool_name,
        action_name=proposed.action_name,
        structured=not isinstance(finished.value, str),
    )
    guarded = await guard_result(finished, runtime.guards, inspected, limits)
    outcome = executed(proposed, guarded, performance.resolved.buckets(), run.duration)
    outcome = await _with_artifacts(outcome, performance)
    return await _append(runtime, flight, outcome, guarded.finished.encoded)


async def _with_artifacts(outcome: Executed, performance: Performance) -> Executed:
    tool = performance.tool
    if tool is None or not _has_hooks(tool):
        return outcome
    name, kwargs = performance.action.name, performance.resolved.kwargs
    return replace(
        outcome,
        artifact_id=await artifact_id_of(tool, name, kwargs),
        artifacts=await artifacts_of(tool, name, kwargs),
    )


async def _append(
    runtime: Runtime, flight: Flight, outcome: Executed | Failed, encoded: bytes | None = None
) -> StreamEvent:
    with anyio.CancelScope(shield=True):
        # Settled beforehand: if the append is refused or fails, a second closing would not fare better.
        flight.settled = True
        try:
            event = await runtime.journal.close(flight.proposed, outcome, flight.version, encoded)
        except Conflict:
            await runtime.journal.keep_late(flight.proposed, outcome)
            recorded = await recorded_events(runtime, flight.proposed)
            return recorded[-1]
    runtime.telemetry.transition(event)
    return event
