"""A call's proposal, with what its conversation's log says of the name it calls."""

from __future__ import annotations

from msgspec.structs import replace

from engine.call import ToolCall
from engine.context import CallContext, require_storable_ids
from engine.proposal import Origin, Proposal, Refusal, needs_memory, propose
from engine.refusals import STOPPED_AFTER, refusal_text
from engine.remembered import NOTHING
from engine.runtime import Runtime
from engine.schemas import Prepared

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
    remembered = NOTHING
    if needs_memory(call, context, prepared):
        remembered = await runtime.conversations.remembered(context, toolset)
    proposal = propose(call, context, toolset, prepared, origin, runtime.checker, remembered)
    verdict = proposal.verdict
    if not isinstance(verdict, Refusal) or verdict.kind != "unknown_tool":
        return proposal
    name = proposal.proposed.llm_name
    times = await runtime.conversations.times_refused(context, name)
    text = refusal_text(name, toolset.callable_names(prepared, remembered), times=times + 1)
    return replace(proposal, verdict=replace(verdict, message=text)) if times >= STOPPED_AFTER else proposal
