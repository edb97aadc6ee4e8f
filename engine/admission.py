"""The gate at the moment of the call: asked once the proposal is durable, before the tool runs (step 6)."""

from __future__ import annotations

from time import time_ns
from typing import Final

from msgspec.structs import replace

from engine.asking import ask_tool
from engine.consulting import ruling_now, ruling_on
from engine.definition import Definition
from engine.flight import Flight
from engine.gate import Allow, Decision, Deny, GateQuestion, Pause, check_again, check_pause
from engine.outcomes import verdict_event
from engine.proposal import Proposal, Refusal
from engine.recorded import recorded_events
from engine.runtime import Runtime
from engine.telemetry import Caller
from events.errors import Conflict
from events.types import Denied, Failed, Paused, Proposed, StreamEvent

__all__ = ("admit", "admit_again")

_NOT_AGAIN: Final = (
    "The worker that ran this call is gone, and it may not be run again; whether the call had its effect is not known."
)


async def admit(runtime: Runtime, flight: Flight, proposal: Proposal, caller: Caller) -> StreamEvent | None:
    """Ask the gate what could not be told before; None: the call may run. Otherwise the flight is settled.

    Where somebody else closed the call meanwhile, what is recorded is returned.

    :raises LogUnavailable: if what was decided cannot be written: then the call does not run
    """
    question, proposed = proposal.question, flight.proposed
    if isinstance(proposal.verdict, Refusal):
        return await _stopped(runtime, flight, proposal, proposal.verdict, caller, time_ns())
    if question is None:
        return None
    # A call that is taken over was proposed by another: nothing of it has been written by this worker.
    taken_over = proposed.id != proposal.proposed.id
    rulebook = runtime.rulebook
    policy = await (rulebook.fresh if taken_over else rulebook.as_written)(proposed.user_id)
    if not policy and proposal.verdict is None and not question.unasked:
        return None
    began = time_ns()
    question = replace(question, ruling=ruling_on(runtime, policy, proposed, proposal.action, proposal.hidden))
    decision = check_pause(await _asked(runtime, proposal, question))
    if isinstance(decision, Allow):
        ruling = question.ruling
        flight.rule = ruling.rule if ruling is not None and ruling.effect == "allow" else None
        return None
    # What a dead worker began may have had its effect: to say that it was not run would be a guess.
    verdict = Refusal("orphaned", _NOT_AGAIN) if taken_over else decision
    return await _stopped(runtime, flight, proposal, verdict, caller, began)


async def _stopped(
    runtime: Runtime,
    flight: Flight,
    proposal: Proposal,
    verdict: Pause | Deny | Refusal,
    caller: Caller,
    began: int,
) -> StreamEvent:
    proposed = flight.proposed
    event = verdict_event(proposed, verdict, runtime.settings.limits)
    if isinstance(event, Paused):
        event = _as_defined(event, proposal, proposed)
    try:
        stopped: StreamEvent = await _closed(runtime, flight, event)
    except Conflict:
        *_, stopped = await recorded_events(runtime.log, proposed.key, proposed.user_id)
        if isinstance(stopped, Proposed):
            raise
    flight.settled = True
    runtime.telemetry.not_run(proposed, stopped, caller, began)
    return stopped


def _as_defined(event: Paused, proposal: Proposal, proposed: Proposed) -> Paused:
    """Return a pause that says so if the definition to be approved is not the one that was proposed."""
    action, member = proposal.action, proposal.member
    now = None if action is None or member is None else member.fingerprints[action.name]
    if now is None or now == proposed.fingerprint:
        return event
    return replace(event, old_fingerprint=proposed.fingerprint, new_fingerprint=now)


async def _closed(runtime: Runtime, flight: Flight, event: Failed | Paused | Denied) -> StreamEvent:
    if isinstance(event, Paused):
        return await runtime.journal.close(flight.proposed, event, flight.version)
    return await runtime.endings.append(flight.proposed, event, flight.version)


async def _asked(runtime: Runtime, proposal: Proposal, question: GateQuestion) -> GateQuestion:
    """Return a question with the tool's own answer, where one is wanted."""
    if not question.unasked or (question.ruling is not None and question.ruling.effect == "deny"):
        return question
    assert proposal.action is not None
    assert proposal.member is not None
    live = await ask_tool(runtime, proposal.action, proposal.member, proposal.proposed, proposal.hidden)
    return replace(question, live=live)


async def admit_again(
    runtime: Runtime, proposed: Proposed, definition: Definition | None, rules: frozenset[str | None]
) -> Decision:
    """Ask the gate about a call that was approved: whether something forbids it now that its approvers did not know of.

    :param proposed: with the arguments that would run
    :param definition: its action; None: its client's
    :param rules: of all its pauses
    :raises LogUnavailable: if the operator's rules cannot be read
    """
    action = None if definition is None else definition.action
    hidden = None if definition is None else definition.hidden(runtime.secrets, proposed)
    ruling = await ruling_now(runtime, proposed, action, hidden)
    live = None
    if definition is not None and definition.action.has_live_gate and not (ruling and ruling.effect == "deny"):
        live = await ask_tool(runtime, definition.action, definition.member, proposed, hidden)
    question = GateQuestion(
        client_side=action is None,
        requires_approval=action is not None and action.require_approval,
        headless=proposed.headless,
        allowlisted=False,
        live_gate=None if action is None else action.live_gate,
        live=live,
        ruling=ruling,
    )
    return check_again(question, rules)
