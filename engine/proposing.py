"""A call's proposal, with what its conversation's log says of the name it calls."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from engine.call import ToolCall
from engine.context import CallContext, require_storable_ids
from engine.parsing import log_warnings
from engine.proposal import Origin, Proposal, Refusal, needs_memory, propose
from engine.refusals import STOPPED_AFTER, refusal_text
from engine.remembered import NOTHING, Remembered
from engine.runtime import Runtime
from engine.schemas import Prepared
from engine.toolset import Toolset

__all__ = ("proposal_of",)


async def proposal_of(
    runtime: Runtime, call: ToolCall, context: CallContext, prepared: Prepared | None, origin: Origin
) -> Proposal:
    """Return the proposal of a call; reads the log only if its name is not among the prepared ones.

    A name of which the log has two refused calls already is refused with the advice to stop calling it.

    :raises Refused: if the context holds an id that no database stores
    """
    require_storable_ids(context)
    toolset = await runtime.toolsets.resolve(context)
    made = await _proposed(runtime, call, context, toolset, prepared, origin)
    if not _may_be_old(runtime, made.proposal):
        return _final(made.proposal)
    now = await runtime.toolsets.resolve(context, now=True)
    if now is not toolset:
        toolset = now
        made = await _proposed(runtime, call, context, toolset, prepared, origin)
    if not _is_unknown(made.proposal):
        return _final(made.proposal)
    proposal, remembered = _final(made.proposal), made.remembered
    verdict = proposal.verdict
    assert isinstance(verdict, Refusal)
    name = proposal.proposed.llm_name
    times = await runtime.conversations.times_refused(context, name)
    text = refusal_text(name, toolset.callable_names(prepared, remembered), times=times + 1)
    return replace(proposal, verdict=replace(verdict, message=text)) if times >= STOPPED_AFTER else proposal


class _Made(msgspec.Struct, frozen=True):
    proposal: Proposal
    remembered: Remembered


async def _proposed(
    runtime: Runtime,
    call: ToolCall,
    context: CallContext,
    toolset: Toolset,
    prepared: Prepared | None,
    origin: Origin,
) -> _Made:
    remembered = NOTHING
    if needs_memory(call, context, prepared):
        remembered = await runtime.conversations.remembered(context, toolset)
    proposal = propose(call, context, toolset, prepared, origin, runtime.checker, runtime.secrets, remembered)
    return _Made(proposal, remembered)


def _final(proposal: Proposal) -> Proposal:
    """Log what there is to warn of, now that the rows are known."""
    if proposal.warnings:
        log_warnings(proposal.warnings)
    return proposal


def _may_be_old(runtime: Runtime, proposal: Proposal) -> bool:
    """Tell whether a call stops by what may have changed since this engine's last append.

    Of what runs, the row is looked at again once the proposal is written; what is stopped here must be stopped rightly.
    """
    if proposal.verdict is None or _is_unknown(proposal):
        return proposal.verdict is not None
    member = proposal.member
    return member is not None and member.tool is not None and runtime.toolsets.may_change(member.row)


def _is_unknown(proposal: Proposal) -> bool:
    return isinstance(proposal.verdict, Refusal) and proposal.verdict.kind == "unknown_tool"
