"""The operator's rules brought to a call: before it is written, once it is, and when it goes on after a pause."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from engine.actions import Action
from engine.arguments import sort_arguments
from engine.concealing import Concealing, arguments_to_run
from engine.credentials import CredentialsError
from engine.gate import Deny, GateQuestion, Pause, Ruling, check_pause
from engine.policy import Policy, PolicyQuestion
from engine.proposal import Proposal
from engine.runtime import Runtime
from events.types import Proposed

__all__ = ("consulted", "ruling_now", "ruling_on")


async def consulted(runtime: Runtime, proposal: Proposal) -> Proposal:
    """Return a proposal with the verdict that follows it at once, by the rules too.

    That a call may run is said by what was last read of the rules, and looked at again once it is written: that costs
    an unruled call nothing. That it may not is said by the rules as they are.

    :raises LogUnavailable: if they cannot be read
    """
    question, user_id = proposal.question, proposal.proposed.user_id
    if question is None:
        return proposal
    policy = runtime.rulebook.known(user_id)
    if not policy and proposal.verdict is None:
        return proposal
    known = _ruled(runtime, proposal, question, policy)
    if known.verdict is None:
        return known
    return _ruled(runtime, proposal, question, await runtime.rulebook.fresh(user_id))


def _ruled(runtime: Runtime, proposal: Proposal, question: GateQuestion, policy: Policy) -> Proposal:
    ruling = ruling_on(runtime, policy, proposal.proposed, proposal.action, proposal.hidden)
    if ruling is None:
        return proposal
    question = replace(question, ruling=ruling)
    # What is denied whatever its tool says need not be asked about.
    decision = None if question.unasked and ruling.effect != "deny" else check_pause(question)
    return replace(proposal, verdict=decision if isinstance(decision, Pause | Deny) else None)


async def ruling_now(
    runtime: Runtime, proposed: Proposed, action: Action | None, hidden: Concealing | None = None
) -> Ruling | None:
    """Return what the rules say of a call at this moment. :raises LogUnavailable: if they cannot be read"""
    return ruling_on(runtime, await runtime.rulebook.fresh(proposed.user_id), proposed, action, hidden)


def ruling_on(
    runtime: Runtime, policy: Policy, proposed: Proposed, action: Action | None, hidden: Concealing | None = None
) -> Ruling | None:
    """Return what rules say of a call, its secrets in their places; None: nothing.

    :param action: as it is defined now; None: a client's, whose definition is in the proposal
    """
    if not policy:
        return None
    question = PolicyQuestion(
        user_id=proposed.user_id,
        tool_id=proposed.tool_id or "",
        tool_name=proposed.tool_name,
        action_name=proposed.action_name,
        effect=proposed.effect if action is None else action.effect,
        conversation_id=proposed.conversation_id,
        headless=proposed.headless,
        fingerprint=proposed.fingerprint,
        arguments=_as_run(action, _arguments(hidden, proposed)),
        now=runtime.rulebook.now(),
    )
    return policy.decide(question)


def _arguments(hidden: Concealing | None, proposed: Proposed) -> Any:
    try:
        return arguments_to_run(hidden, proposed)
    except CredentialsError:
        # Such a call does not run, whatever a rule says.
        return proposed.arguments


def _as_run(action: Action | None, arguments: Any) -> Any:
    """Return a call's arguments with the owner's presets and pinned values: what a rule must not be led past by."""
    if action is None or not isinstance(arguments, dict):
        return arguments
    resolved = sort_arguments(action, arguments)
    if not resolved.is_request:
        return resolved.kwargs
    return resolved.query_params | resolved.headers | resolved.body | resolved.parameters
