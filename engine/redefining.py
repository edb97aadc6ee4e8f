"""A call whose row was changed between its proposal and its run: what runs is the row as it is now, or nothing."""

from __future__ import annotations

from msgspec.structs import replace

from engine.actions import Action
from engine.context import CallContext
from engine.definition import Definition
from engine.flight import Flight
from engine.gate import Deny, Pause, check_pause
from engine.proposal import Proposal, Refusal, Verdict, question_of
from engine.rechecking import recheck
from engine.refusals import quoted
from engine.runtime import Runtime
from engine.toolset import Member
from events.types import FailureKind, Proposed

__all__ = ("may_change", "redefined")


def may_change(runtime: Runtime, proposal: Proposal) -> bool:
    """Tell whether a call's row is one that may change, or be switched off, while its engine is open."""
    member = proposal.member
    return member is not None and member.tool is not None and runtime.toolsets.may_change(member.row)


async def redefined(runtime: Runtime, flight: Flight, proposal: Proposal, context: CallContext) -> Proposal:
    """Return a durable proposal with its action as its row had it when the proposal was written, or later.

    Its row must be one that may change. That costs a call next to nothing whose row is as it was: the commit has told
    whether anything changed. A row that is gone, or takes the arguments no more, is a refusal; one that wants approval
    now is a pause.
    """
    member = proposal.member
    assert member is not None
    proposed = flight.proposed
    row = await runtime.toolsets.current(member.row, context)
    # As the turn offers it: what asks of a built-in tool asks of a stored row that stands for it.
    offered = (await runtime.toolsets.resolve(context)).action(member.row.id, proposed.action_name)
    if row is not None and row.version == member.row.version and row.asks is member.row.asks:
        asks = proposal.action is not None and proposal.action.require_approval
        if offered is None or asks or not offered.require_approval:
            return proposal
    named = quoted(proposed.llm_name or proposed.action_name)
    if row is None or row.name != proposed.tool_name:
        return _refused(proposal, "unknown_tool", f"{named} was taken away just now.")
    current = await runtime.toolsets.member(row)
    if current is None:
        return _refused(proposal, "load", f"The tool of {named} was changed just now, and cannot be reached.")
    action = offered or current.action(proposed.action_name)
    if action is None:
        return _refused(proposal, "unknown_tool", f"{named} was changed just now and is not there any more.")
    return _checked(runtime, proposal, proposed, current, action, context)


def _refused(proposal: Proposal, kind: FailureKind, message: str) -> Proposal:
    return replace(proposal, verdict=Refusal(kind, message))


def _checked(
    runtime: Runtime, proposal: Proposal, proposed: Proposed, member: Member, action: Action, context: CallContext
) -> Proposal:
    definition = Definition(action, member)
    hidden = definition.hidden(runtime.secrets, proposed)
    verdict: Verdict | None = recheck(runtime, definition, proposed)
    question = question_of(action, member, context)
    if verdict is None and not question.unasked:
        decision = check_pause(question)
        verdict = decision if isinstance(decision, Pause | Deny) else None
    return replace(proposal, action=action, member=member, question=question, verdict=verdict, hidden=hidden)
