"""``resume``: a call that was approved runs, on whichever worker claims it; from the log alone (DESIGN 6)."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from msgspec.structs import replace

from engine.claim import append_at, claim_and_append, claim_and_run
from engine.context import CallContext
from engine.deadlines import deadline_of, is_past
from engine.decisions import expired
from engine.definition import Definition, Missing, definition_of, is_client_call
from engine.gate import TO_CLIENT, Pause
from engine.outcomes import digest_as_run, failed, paused, resumed
from engine.rechecking import recheck
from engine.runtime import Runtime
from engine.standing import Standing, impossible, stand
from engine.stopping import stopped_now
from engine.takeover import take_over
from events.types import Approved, Failed, Paused, StreamEvent

__all__ = ("gone", "resume")

_CHANGED = "the tool's definition has changed since this call was approved"
_ALTERED = "the arguments are not those that were approved"


async def resume(runtime: Runtime, key: str, context: CallContext) -> AsyncGenerator[StreamEvent, None]:
    """Run an approved call, and yield the one event that this appends: nothing is proposed a second time.

    What runs is what was approved, byte for byte. Where the tool's definition has changed since, the call waits for a
    new approval (Paused); past its deadline, or where a rule or denylist forbids it now, it is denied; where its tool
    is gone, it fails. An idempotent call whose worker died is taken over. Exactly one of several workers gets it.

    :raises NotFound: if the tenant has no such call
    :raises Refused: if it is not approved, or somebody else was faster; the text names its state
    :raises LogUnavailable: if the claim cannot be written (nothing ran), or the outcome
    """
    yield await _resumed(runtime, await stand(runtime, key, context.user_id), context)


async def _resumed(runtime: Runtime, standing: Standing, context: CallContext) -> StreamEvent:
    match standing.phase:
        case "approved" if not standing.row.late and standing.approved is not None:
            return await _approved(runtime, standing, standing.approved, context)
        case "claimed" if not standing.row.late:
            return await take_over(runtime, standing, context)
        case "paused:awaiting_approval" if is_past(standing.row.expires_at):
            return await append_at(runtime, standing, expired(standing))
        case "paused:awaiting_approval":
            raise impossible(standing, "resumed", "nobody has approved it")
        case "paused:requires_client_execution" | "paused:requires_input":
            raise impossible(standing, "resumed", "what it waits for is given by submit_result")
        case _:
            raise impossible(standing, "resumed")


async def _approved(runtime: Runtime, standing: Standing, approval: Approved, context: CallContext) -> StreamEvent:
    if standing.paused is not None and is_past(standing.paused.expires_at):
        return await append_at(runtime, standing, expired(standing))
    if is_client_call(runtime, standing.proposed):
        stopped = await stopped_now(runtime, standing, None)
        if stopped is not None:
            return await append_at(runtime, standing, stopped)
        waits = paused(standing.proposed, TO_CLIENT, deadline_of(TO_CLIENT, runtime.settings.limits))
        return await claim_and_append(runtime, standing, waits)
    definition = await definition_of(runtime, standing.proposed)
    if isinstance(definition, Missing):
        return await claim_and_append(runtime, standing, gone(standing, definition))
    asked = _asks_again(runtime, standing, approval, definition)
    if asked is not None:
        return await append_at(runtime, standing, asked)
    refusal = recheck(runtime, definition, standing.proposed)
    if refusal is not None:
        return await claim_and_append(runtime, standing, failed(standing.proposed, refusal.kind, refusal.message))
    stopped = await stopped_now(runtime, standing, definition)
    if stopped is not None:
        return await append_at(runtime, standing, stopped)
    return await claim_and_run(runtime, standing, definition, context, resumed(standing.proposed, runtime.worker))


def gone(standing: Standing, missing: Missing) -> Failed:
    """Return the end of a call whose tool is not there when it may go on."""
    return failed(standing.proposed, missing.kind, f"This call was allowed and could not be run: {missing.why}.")


def _asks_again(runtime: Runtime, standing: Standing, approval: Approved, definition: Definition) -> Paused | None:
    """Return the pause of a call that is not what was approved."""
    if digest_as_run(standing.proposed) != approval.digest:
        pause = Pause("awaiting_approval", _ALTERED, "arguments_altered")
    elif definition.fingerprint != approval.fingerprint:
        pause = Pause("awaiting_approval", _CHANGED, "definition_changed")
    else:
        return None
    event = paused(standing.proposed, pause, deadline_of(pause, runtime.settings.limits))
    return replace(event, old_fingerprint=approval.fingerprint, new_fingerprint=definition.fingerprint)
