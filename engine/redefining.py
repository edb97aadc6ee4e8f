"""A call whose row was changed between its proposal and its run: what runs is the row as it is now, or nothing."""

from __future__ import annotations

from msgspec.structs import replace

from engine.actions import Action
from engine.context import CallContext
from engine.definition import Definition
from engine.flight import Flight
from engine.proposal import Proposal, Refusal, question_of
from engine.rechecking import recheck
from engine.refusals import quoted
from engine.runtime import Runtime
from engine.toolset import Member
from events.types import Proposed

__all__ = ("is_stored", "redefined")


def is_stored(runtime: Runtime, proposal: Proposal) -> bool:
    """Tell whether a call's row is one that may change while its engine is open."""
    member = proposal.member
    return member is not None and member.tool is not None and not runtime.toolsets.is_given(member.row.id)


async def redefined(runtime: Runtime, flight: Flight, proposal: Proposal, context: CallContext) -> Proposal:
    """Return a durable proposal with its action as its row had it when the proposal was written, or later.

    Its row must be a stored one. That costs a call nothing whose row is as it was: the commit has told whether anything
    changed. A row that is gone, or takes the arguments no more, is a refusal.
    """
    member = proposal.member
    assert member is not None
    vouched = context.agent_id is not None
    row = await runtime.toolsets.row(member.row.id, context.user_id, vouched=vouched, now=False)
    if row is not None and row.version == member.row.version:
        return proposal
    proposed = flight.proposed
    current = None if row is None or row.name != proposed.tool_name else await runtime.toolsets.fresh(row)
    action = None if current is None else _active(current, proposed.action_name)
    if current is None or action is None:
        gone = f"{quoted(proposed.llm_name or proposed.action_name)} was changed just now and is not there any more."
        return replace(proposal, verdict=Refusal("unknown_tool", gone))
    return _checked(runtime, proposal, proposed, current, action, context)


def _checked(
    runtime: Runtime, proposal: Proposal, proposed: Proposed, member: Member, action: Action, context: CallContext
) -> Proposal:
    definition = Definition(action, member)
    hidden = definition.hidden(runtime.secrets, proposed)
    verdict = recheck(runtime, definition, proposed)
    question = question_of(action, member, context)
    return replace(proposal, action=action, member=member, question=question, verdict=verdict, hidden=hidden)


def _active(member: Member, name: str) -> Action | None:
    return next((action for action in member.actions if action.name == name and action.active), None)
