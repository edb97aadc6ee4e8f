"""From a tool's ending to its recorded outcome (steps 9 and 10): clean, guard, preview, status, append.

Once the tool has returned, its outcome is what is appended, whoever is cancelled meanwhile.
"""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial
from typing import Final, TypeVar

import anyio
import anyio.to_thread
from msgspec.structs import replace

from engine.artifacts_of import artifact_id_of, artifacts_of
from engine.concealing import Concealing
from engine.contract import InputRequired, Tool
from engine.deadlines import deadline_of
from engine.flight import Flight
from engine.gate import Pause
from engine.guards import WITHHELD, Guarded, Inspected, guard_result
from engine.journalled import journal_form
from engine.outcomes import executed, failed, paused
from engine.performance import Performance
from engine.recorded import recorded_since
from engine.results import Finished, finish, finish_quickly, finish_result, looked_through
from engine.running import Broke, Returned, comes_from_outside, describe_exception
from engine.runtime import Runtime
from engine.settings import Limits
from events.errors import Conflict, LogUnavailable
from events.persistence import run_to_end
from events.types import Artifact, Executed, Failed, Paused, Proposed, StreamEvent

__all__ = ("conclude", "guarded_result")

_HOOK_TIME: Final = 10.0
"""Seconds a tool may take to name what it made."""

_NO_ANSWER: Final = "The tool asks for input, and nobody watches this run who could give it; it may have had an effect."

_NO_WAITING: Final = (
    "The tool asks for input, and while the journal is away its call cannot wait for it; it may have had an effect."
)

T = TypeVar("T")


async def conclude(runtime: Runtime, flight: Flight, performance: Performance) -> StreamEvent:
    """Append the outcome of a call and return it as recorded; a cancellation takes effect after that.

    A tool that asks for input pauses its call. Where somebody else closed the call meanwhile, its outcome is kept as
    LateOutcome, and what is recorded is returned.

    :raises Conflict: if somebody else has taken the call over and not ended it yet
    :raises LogUnavailable: if it cannot be written
    """
    run = performance.run
    if isinstance(run, Broke):
        return await _append(runtime, flight, failed(flight.proposed, run.kind, run.message, run.exception_type))
    if isinstance(run.value, InputRequired):
        return await _append(runtime, flight, _waiting(runtime, flight.proposed, run.value, performance.hidden))
    if not runtime.guards and performance.hidden is None and not _has_hooks(performance.tool):
        quick = run.finished or finish_quickly(run.value, runtime.settings.limits)
        if quick is not None and not quick.is_long:
            resolved = performance.buckets(flight.proposed)
            outcome = executed(flight.proposed, Guarded(quick, None), resolved, run.duration)
            return await _append(runtime, flight, outcome, quick.encoded)
        run = replace(run, finished=quick)
    return await run_to_end(partial(_conclude_slowly, runtime, flight, performance, run))


def _waiting(runtime: Runtime, proposed: Proposed, asked: InputRequired, hidden: Concealing | None) -> Paused | Failed:
    if proposed.headless:
        return failed(proposed, "exception", _NO_ANSWER)
    reason, request = str(journal_form(asked.reason)), journal_form(asked.request)
    if hidden is not None:
        reason, request = hidden.text(reason), hidden.content(request, proposed)
    pause = Pause("requires_input", reason, "input_required")
    return paused(proposed, pause, deadline_of(pause, runtime.settings.limits), request)


def _has_hooks(tool: Tool | None) -> bool:
    return hasattr(tool, "get_artifact_id") or hasattr(tool, "get_artifacts")


async def _conclude_slowly(runtime: Runtime, flight: Flight, performance: Performance, run: Returned) -> StreamEvent:
    proposed = flight.proposed
    try:
        finished = run.finished or await finish_result(run.value, runtime.settings.limits)
        await looked_through(finished)
        if performance.hidden is not None:
            finished = await _without_secrets(performance.hidden, finished, runtime.settings.limits)
    except BaseException as error:
        if comes_from_outside(error):
            raise
        # Something within the result, an iterator for instance, broke while it was looked through.
        said = describe_exception(error)
        said = said if performance.hidden is None else performance.hidden.text(said)
        event = failed(proposed, "exception", said, type(error).__name__)
        return await _append(runtime, flight, event)
    guarded = await guarded_result(runtime, proposed, finished)
    outcome = executed(proposed, guarded, performance.buckets(proposed), run.duration)
    outcome = await _with_artifacts(outcome, performance)
    return await _append(runtime, flight, outcome, guarded.finished.encoded)


async def _without_secrets(hidden: Concealing, finished: Finished, limits: Limits) -> Finished:
    if not finished.is_long:
        return hidden.finished(finished, limits)
    return await looked_through(await anyio.to_thread.run_sync(hidden.finished, finished, limits))


async def guarded_result(runtime: Runtime, proposed: Proposed, finished: Finished) -> Guarded:
    """Return a result as the engine's guards let it pass; whatever fails there, it does not pass unseen."""
    limits = runtime.settings.limits
    try:
        return await guard_result(finished, runtime.guards, _inspected(proposed, finished), limits)
    except BaseException as error:
        if comes_from_outside(error):
            raise
        # A guard that exits or cancels has not looked: whatever fails, the result must not pass on that account.
        withheld = replace(finish(WITHHELD, limits), status=finished.status)
        return Guarded(withheld, f"a guard could not look ({type(error).__name__}), withheld")


def _inspected(proposed: Proposed, finished: Finished) -> Inspected:
    return Inspected(
        user_id=proposed.user_id,
        tool_name=proposed.tool_name,
        action_name=proposed.action_name,
        structured=not isinstance(finished.value, str),
    )


async def _with_artifacts(outcome: Executed, performance: Performance) -> Executed:
    tool = performance.tool
    if tool is None or not _has_hooks(tool):
        return outcome
    name, kwargs = performance.action.name, performance.resolved.kwargs
    artifact_id = await _in_time(artifact_id_of(tool, name, kwargs))
    artifacts = await _in_time(artifacts_of(tool, name, kwargs)) or ()
    if (hidden := performance.hidden) is not None:
        artifact_id = None if artifact_id is None else hidden.text(artifact_id)
        artifacts = tuple(_shown(each, hidden) for each in artifacts)
    return replace(outcome, artifact_id=artifact_id, artifacts=artifacts)


def _shown(artifact: Artifact, hidden: Concealing) -> Artifact:
    texts = {name: getattr(artifact, name) for name in artifact.__struct_fields__}
    return replace(artifact, **{name: hidden.text(text) for name, text in texts.items() if isinstance(text, str)})


async def _in_time(answer: Awaitable[T]) -> T | None:
    """Return what a hook answers; None where it exits or takes too long, for it never costs a call its result."""
    try:
        with anyio.move_on_after(_HOOK_TIME):
            return await answer
    except BaseException as error:
        if comes_from_outside(error):
            raise
    return None


async def _append(
    runtime: Runtime, flight: Flight, outcome: Executed | Failed | Paused, encoded: bytes | None = None
) -> StreamEvent:
    # Settled beforehand: if this is refused or fails, a second closing would not fare better.
    flight.settled = True
    if flight.rule is not None and not isinstance(outcome, Paused):
        outcome = replace(outcome, rule=flight.rule)
    if flight.spooled and isinstance(outcome, Paused):
        outcome = failed(flight.proposed, "exception", _NO_WAITING)
    try:
        return await _settle(runtime, flight, outcome, encoded)
    except anyio.get_cancelled_exc_class():
        # Written or not, appending the same event again finds out.
        async def again() -> None:
            await _settle(runtime, flight, outcome, encoded)

        await runtime.last_appends.see_to(again, f"the outcome of call {flight.proposed.key}, cancelled meanwhile")
        raise


async def _settle(
    runtime: Runtime, flight: Flight, outcome: Executed | Failed | Paused, encoded: bytes | None
) -> StreamEvent:
    proposed = flight.proposed
    event: StreamEvent
    if flight.spooled:
        assert not isinstance(outcome, Paused)
        event = await runtime.endings.spool(proposed, outcome, 0)
    else:
        try:
            event = await runtime.journal.close(proposed, outcome, flight.version, encoded)
        except LogUnavailable as outage:
            event = await _keep(runtime, flight, outcome, outage)
        except Conflict as conflict:
            event = await _closed_by_another(runtime, flight, outcome, conflict)
    if flight.span is not None:
        flight.span.outcome(event)
        runtime.telemetry.ran(event, flight.span)
    return event


async def _closed_by_another(
    runtime: Runtime, flight: Flight, outcome: Executed | Failed | Paused, conflict: Conflict
) -> StreamEvent:
    """Keep an outcome that came too late, and return what is recorded."""
    try:
        if not isinstance(outcome, Paused):
            await runtime.journal.keep_late(flight.proposed, outcome)
        recorded = await recorded_since(runtime.log, flight.proposed, flight.version)
    except LogUnavailable as outage:
        if not isinstance(outcome, Paused):
            await runtime.endings.spool(flight.proposed, outcome, flight.version, outage)
        raise
    if recorded is None:
        raise conflict
    return recorded


async def _keep(
    runtime: Runtime, flight: Flight, outcome: Executed | Failed | Paused, outage: LogUnavailable
) -> StreamEvent:
    """Spool an outcome. A pause cannot be: then the call is closed as any that breaks off."""
    if isinstance(outcome, Paused):
        flight.settled = False
        raise outage
    return await runtime.endings.spool(flight.proposed, outcome, flight.version, outage)
