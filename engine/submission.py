"""``submit_result``: what a call waited for from outside has come: its client's result, or an answer to its tool."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from functools import partial
from typing import Any

from engine.admission import admit_again
from engine.claim import claim_and_append, claim_and_run
from engine.conclusion import guarded_result
from engine.context import CallContext
from engine.definition import Definition, Missing, definition_of
from engine.gate import Allow, Deny
from engine.journalled import journal_form
from engine.outcomes import executed, failed, resumed
from engine.rechecking import recheck
from engine.results import finish_result
from engine.resuming import gone
from engine.runtime import Runtime
from engine.standing import Standing, impossible, stand
from events.errors import Conflict, Refused
from events.persistence import run_to_end
from events.types import Executed, Failed, StreamEvent

__all__ = ("submit_result",)

_CHANGED = "This call was not continued: its tool's definition has changed while it waited. It may have had an effect."


async def submit_result(
    runtime: Runtime, key: str, result: Any, context: CallContext
) -> AsyncGenerator[StreamEvent, None]:
    """Take what a call waits for from outside, and yield the one event that this appends.

    Of a call that its client executes, ``result`` becomes the outcome, cleaned, guarded, its status read in-band like
    any tool's; exactly once. Of a call whose tool asked for input it is the answer, with which the tool is run anew.
    A result that comes when its call has been given up is kept as LateOutcome.

    :raises NotFound: if the tenant has no such call
    :raises Refused: if it does not wait for this, or somebody else was faster; the text names its state
    :raises LogUnavailable: if it cannot be written: the call still waits
    """
    standing = await stand(runtime, key, context.user_id)
    match standing.phase:
        case "paused:requires_client_execution":
            yield await run_to_end(partial(_from_client, runtime, standing, result))
        case "paused:requires_input" if not standing.row.late:
            yield await _answered(runtime, standing, journal_form(result), context)
        case "paused:awaiting_approval":
            raise impossible(standing, "given a result", "it waits for a decision")
        case _:
            await _keep_if_given_up(runtime, standing, result)
            raise impossible(standing, "given a result", "it does not wait for one")


async def _from_client(runtime: Runtime, standing: Standing, result: Any) -> StreamEvent:
    outcome = await _outcome(runtime, standing, result)
    try:
        return await runtime.journal.close(standing.proposed, outcome, standing.row.version)
    except Conflict as conflict:
        now = await stand(runtime, standing.row.key, standing.row.user_id)
        await _keep_if_given_up(runtime, now, result)
        raise impossible(now, "given a result", "somebody was faster") from conflict


async def _outcome(runtime: Runtime, standing: Standing, result: Any) -> Executed:
    try:
        finished = await finish_result(result, runtime.settings.limits)
    except Exception as error:
        raise Refused(f"this result cannot be read ({type(error).__name__}); give JSON content") from error
    guarded = await guarded_result(runtime, standing.proposed, finished)
    took = (datetime.now(UTC) - standing.row.updated_at).total_seconds()
    return executed(standing.proposed, guarded, {"parameters": standing.proposed.arguments}, max(took, 0.0))


async def _keep_if_given_up(runtime: Runtime, standing: Standing, result: Any) -> None:
    """Keep the first result of a client's call that was closed while its client was at work."""
    row = standing.row
    if row.status == "failed" and row.pause_type == "requires_client_execution" and not row.late:
        await runtime.journal.keep_late(standing.proposed, await _outcome(runtime, standing, result))


async def _answered(runtime: Runtime, standing: Standing, answer: Any, context: CallContext) -> StreamEvent:
    proposed = standing.proposed
    definition = await definition_of(runtime, proposed)
    stopped = gone(standing, definition) if isinstance(definition, Missing) else None
    if isinstance(definition, Definition):
        stopped = await _stopped(runtime, standing, definition)
        hidden = definition.hidden(runtime.secrets, proposed)
        answer = answer if hidden is None else hidden.content(answer, proposed)
        if stopped is None:
            claim = resumed(proposed, runtime.worker, answer=answer)
            return await claim_and_run(runtime, standing, definition, context, claim)
    assert stopped is not None
    return await claim_and_append(runtime, standing, stopped, answer)


async def _stopped(runtime: Runtime, standing: Standing, definition: Definition) -> Failed | None:
    """Return the end of a call that may not go on: its tool has been at work, so it fails rather than being denied."""
    proposed = standing.proposed
    if definition.fingerprint != standing.row.fingerprint:
        return failed(proposed, "cancelled", _CHANGED)
    refusal = recheck(runtime, definition, proposed)
    if refusal is not None:
        return failed(proposed, refusal.kind, refusal.message)
    decision = await admit_again(runtime, proposed, definition, standing.rules)
    match decision:
        case Allow():
            return None
        case Deny(rule=rule, message=message):
            return failed(proposed, "cancelled", f"{message} It may have had an effect before.", rule=rule)
        case _:
            return failed(proposed, "cancelled", f"This call was not continued: {decision.reason}.", rule=decision.rule)
