"""The claim: one append by which exactly one worker may run a call (DESIGN 6, Pause and resume)."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.carrying import run_tool
from engine.context import CallContext
from engine.definition import Definition
from engine.outcomes import resumed
from engine.proposal import Proposal
from engine.runtime import Runtime
from engine.standing import Standing, impossible, stand
from events.errors import Conflict, Refused
from events.types import Failed, Paused, Resumed, StreamEvent, ToolEvent

__all__ = ("append_at", "claim_and_append", "claim_and_run")


async def append_at(
    runtime: Runtime, standing: Standing, *events: ToolEvent, dead_worker: str | None = None
) -> StreamEvent:
    """Append events to a call that stands as it was read, and return the last as recorded.

    :raises Refused: if somebody else was faster; the text says how the call stands now
    :raises LogUnavailable: if they cannot be written
    """
    try:
        *_, last = await runtime.journal.step(standing.proposed, events, standing.row.version, dead_worker)
    except Conflict as conflict:
        raise await _moved(runtime, standing) from conflict
    assert isinstance(last, StreamEvent)
    return last


async def claim_and_append(
    runtime: Runtime, standing: Standing, then: Paused | Failed, answer: Any = msgspec.UNSET
) -> StreamEvent:
    """Claim a call whose tool is not run here, and append what becomes of it; both or neither.

    :raises Refused: if somebody else was faster
    :raises LogUnavailable: if it cannot be written
    """
    return await append_at(runtime, standing, resumed(standing.proposed, runtime.worker, answer=answer), then)


async def claim_and_run(
    runtime: Runtime,
    standing: Standing,
    definition: Definition,
    context: CallContext,
    claim: Resumed,
    dead_worker: str | None = None,
) -> StreamEvent:
    """Claim a call, run its tool, append the outcome, and return that as recorded.

    What runs are the journalled arguments; of ``context`` the user and the attachments are taken, all else is its
    proposal's. Cancelled after the claim, the call does not stay in flight.

    :raises Refused: if somebody else was faster: nothing ran
    :raises LogUnavailable: if the claim cannot be written (nothing ran), or the outcome
    """
    flight = runtime.flights.begin(standing.proposed)
    flight.claimed(claim, standing.proposed, standing.row.version + 1)
    flight.request = standing.request
    flight.answer = standing.answer if isinstance(claim.answer, msgspec.UnsetType) else claim.answer
    hidden = definition.hidden(runtime.secrets, standing.proposed)
    proposal = Proposal(standing.proposed, None, definition.action, definition.member, hidden=hidden)
    trouble: Exception | None = None
    try:
        try:
            await runtime.journal.step(standing.proposed, [claim], standing.row.version, dead_worker)
        except Conflict as conflict:
            flight.settled = True
            raise await _moved(runtime, standing) from conflict
        caller = runtime.telemetry.caller()
        return (await run_tool(runtime, flight, proposal, _as_proposed(standing, context), caller)).event
    except Exception as error:
        trouble = error
        raise
    finally:
        if flight.settled:
            runtime.flights.end(flight)
        else:
            await runtime.flights.leave(flight, trouble)


def _as_proposed(standing: Standing, context: CallContext) -> CallContext:
    proposed = standing.proposed
    return CallContext(
        user_id=context.user_id,
        message_id=proposed.message_id,
        conversation_id=proposed.conversation_id,
        run_id=proposed.run_id,
        agent_id=proposed.agent_id,
        headless=proposed.headless,
        attachments=context.attachments,
    )


async def _moved(runtime: Runtime, standing: Standing) -> Refused:
    return impossible(await stand(runtime, standing.row.key, standing.row.user_id), "taken on", "somebody was faster")
