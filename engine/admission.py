"""The gate at the moment of the call: asked once the proposal is durable, before the tool runs (step 6)."""

from __future__ import annotations

from time import time_ns

from msgspec.structs import replace

from engine.asking import ask_tool
from engine.definition import Definition
from engine.flight import Flight
from engine.gate import Allow, Decision, GateQuestion, check_again, check_pause
from engine.outcomes import verdict_event
from engine.proposal import Proposal
from engine.recorded import recorded_events
from engine.runtime import Runtime
from engine.telemetry import Caller
from events.errors import Conflict
from events.types import Proposed, StreamEvent

__all__ = ("admit", "admit_again")


async def admit(runtime: Runtime, flight: Flight, proposal: Proposal, caller: Caller) -> StreamEvent | None:
    """Ask the gate what could not be told before; None: the call may run. Otherwise the flight is settled.

    Where somebody else closed the call meanwhile, what is recorded is returned.

    :raises LogUnavailable: if what was decided cannot be written: then the call does not run
    """
    question = proposal.question
    if question is None or not question.unasked:
        return None
    assert proposal.action is not None
    assert proposal.member is not None
    began, proposed = time_ns(), flight.proposed
    live = await ask_tool(runtime, proposal.action, proposal.member, proposed.arguments, proposed.user_id)
    decision = check_pause(replace(question, live=live))
    if isinstance(decision, Allow):
        return None
    event = verdict_event(proposed, decision, runtime.settings.limits)
    try:
        stopped: StreamEvent = await runtime.journal.close(proposed, event, flight.version)
    except Conflict:
        *_, stopped = await recorded_events(runtime.log, proposed.key, proposed.user_id)
        if isinstance(stopped, Proposed):
            raise
    flight.settled = True
    runtime.telemetry.not_run(proposed, stopped, caller, began)
    return stopped


async def admit_again(
    runtime: Runtime, proposed: Proposed, definition: Definition, rules: frozenset[str | None]
) -> Decision:
    """Ask the gate about a call that was approved: whether something forbids it now that its approvers did not know of.

    :param proposed: with the arguments that would run
    :param rules: of all its pauses
    """
    action = definition.action
    live = None
    if action.has_live_gate:
        live = await ask_tool(runtime, action, definition.member, proposed.arguments, proposed.user_id)
    question = GateQuestion(
        client_side=False,
        requires_approval=action.require_approval,
        headless=proposed.headless,
        allowlisted=False,
        live_gate=action.live_gate,
        live=live,
    )
    return check_again(question, rules)
