"""A call whose proposal cannot be written: whether it runs all the same, and what is known of it (DESIGN 6).

Decided on what is known on this machine alone, and fail closed: no rule may allow what its tool's own flags would stop,
rules that ask or deny hold as they were last known, as does what a user says of built-in tools, and what would have to
wait cannot.
"""

from __future__ import annotations

from time import time_ns
from typing import Final

from msgspec.structs import replace

from engine.asking import ask_tool
from engine.catching_up import catch_up
from engine.consulting import ruling_on
from engine.flight import Flight
from engine.gate import Allow, Decision, Deny, GateQuestion, check_pause
from engine.outage import is_outage
from engine.outcomes import denied, orphaned, verdict_event
from engine.proposal import Proposal, Refusal
from engine.runtime import Runtime
from engine.spool import Spool
from engine.spool_entry import same_call
from engine.spool_folder import Kept
from engine.telemetry import Caller
from events.errors import LogUnavailable
from events.keys import duplicate_key, new_id, ordinal_key
from events.types import Failed, Proposed, StreamEvent

__all__ = ("RUNNING", "enter_unwritten", "recalled")

RUNNING: Final = "This call is running already, so it was not started a second time. Wait for its result."


async def enter_unwritten(
    runtime: Runtime,
    flight: Flight,
    proposal: Proposal,
    caller: Caller,
    outage: LogUnavailable,
    ordinal: int = 1,
) -> list[StreamEvent]:
    """Spool a proposal that cannot be written, if its call may run or is refused whatever the gate says.

    Returns what is to be yielded. Unless ``flight.settled`` then, the tool is to run.

    :param proposal: before any rule was brought to it
    :param ordinal: the first that may be free: the keys before it are other calls'
    :raises LogUnavailable: if it may not run, or can be spooled neither: nothing is there to be yielded
    """
    flight.settled = flight.unwritten = True
    spool = runtime.spool
    try:
        if spool is None or not is_outage(outage) or not _permitted(runtime, proposal.proposed):
            raise outage
        if not isinstance(proposal.verdict, Refusal):
            await _require_allowed(runtime, proposal, outage)
        try:
            return await _enter(runtime, spool, flight, proposal, caller, outage, ordinal)
        except LogUnavailable as error:
            raise error if error is outage else LogUnavailable(f"{outage}; {error}") from outage
    except LogUnavailable:
        if not flight.spooled:
            runtime.flights.forget(flight)
        raise


def _permitted(runtime: Runtime, proposed: Proposed) -> bool:
    match runtime.settings.on_journal_failure:
        case "run":
            return True
        case "run_reads":
            return proposed.effect == "read"
        case _:
            return False


async def _require_allowed(runtime: Runtime, proposal: Proposal, outage: LogUnavailable) -> None:
    if not _sure(runtime, proposal):
        raise LogUnavailable(f"{outage}; what the user says of this tool is not known, so it was not run") from outage
    decision = await _decision(runtime, proposal)
    if decision is None:
        raise LogUnavailable(f"{outage}; the operator's rules are not known, so the call was not run") from outage
    if not isinstance(decision, Allow):
        stopped = "denied" if isinstance(decision, Deny) else "to wait"
        raise LogUnavailable(f"{outage}; the call would be {stopped} ({decision.rule}), so it was not run") from outage


def _sure(runtime: Runtime, proposal: Proposal) -> bool:
    """Tell whether what the user says of the tool is known; a client's tools, and a stored row's, know no standing."""
    member = proposal.member
    if member is None or member.tool is None:
        return True
    return runtime.toolsets.is_sure(member.row, proposal.proposed.user_id)


async def _decision(runtime: Runtime, proposal: Proposal) -> Decision | None:
    """Return what the gate says without any allowance; None: the rules are not known."""
    question, proposed = proposal.question, proposal.proposed
    policy = runtime.rulebook.last_known(proposed.user_id)
    if question is None or policy is None:
        return None
    strict = policy.without_allowances()
    question = replace(question, ruling=ruling_on(runtime, strict, proposed, proposal.action, proposal.hidden))
    return check_pause(await _asked(runtime, proposal, question))


async def _asked(runtime: Runtime, proposal: Proposal, question: GateQuestion) -> GateQuestion:
    denies = question.ruling is not None and question.ruling.effect == "deny"
    if not question.unasked or denies or proposal.action is None or proposal.member is None:
        return question
    live = await ask_tool(runtime, proposal.action, proposal.member, proposal.proposed, proposal.hidden)
    return replace(question, live=live)


async def _enter(
    runtime: Runtime,
    spool: Spool,
    flight: Flight,
    proposal: Proposal,
    caller: Caller,
    outage: LogUnavailable,
    ordinal: int,
) -> list[StreamEvent]:
    """Spool a proposal under the first key that is free for it, or find that the call is known."""
    base = proposal.proposed.key
    while True:
        flight.restart(replace(proposal.proposed, key=ordinal_key(base, ordinal), late=True))
        flight.settled = True
        known, other = await _look(runtime, spool, flight, flight.proposed)
        if known is not None and _is_unsettled(known):
            raise LogUnavailable(f"{outage}; what became of this call cannot be read") from outage
        if known is None and other is None:
            _require_new(runtime, flight.proposed, outage)
            begun = await _begin(runtime, spool, flight, proposal, caller)
            if begun is not None:
                return begun
            continue
        told = await _told(runtime, spool, flight.proposed, known, other, caller)
        if told is not None:
            # What is remembered of the call is its own flight's business.
            runtime.flights.forget(flight)
            return told
        ordinal += 1


def _is_unsettled(known: Kept) -> bool:
    """Tell whether the log decides about what is kept: nobody was told of it, and the call is in the log."""
    return known.outcome is not None and not known.told and known.version > 0


def _require_new(runtime: Runtime, proposed: Proposed, outage: LogUnavailable) -> None:
    if runtime.flights.ended(proposed) and not _is_bare(proposed):
        raise LogUnavailable(f"{outage}; this call was made before, and what became of it cannot be read") from outage


def _is_bare(proposed: Proposed) -> bool:
    return proposed.message_id is None and proposed.run_id is None


async def _begin(
    runtime: Runtime, spool: Spool, flight: Flight, proposal: Proposal, caller: Caller
) -> list[StreamEvent] | None:
    """Spool a proposal, with its refusal if it is refused; None: somebody was faster."""
    proposed, began = flight.proposed, time_ns()
    refusal: Failed | None = None
    if isinstance(proposal.verdict, Refusal):
        event = verdict_event(proposed, proposal.verdict, runtime.settings.limits)
        assert isinstance(event, Failed)
        refusal = replace(event, late=True)
    else:
        # Beforehand: cancelled meanwhile, it may be there, and then its end must be, too.
        flight.spooled, flight.settled = True, False
    flight.unwritten = False
    try:
        known = await spool.begin(proposed, refusal)
    except LogUnavailable:
        flight.spooled, flight.settled = False, True
        raise
    if known is not None:
        flight.spooled, flight.settled, flight.unwritten = False, True, True
        return None
    if refusal is None:
        return [proposed]
    runtime.telemetry.not_run(proposed, refusal, caller, began)
    return [proposed, refusal]


async def recalled(runtime: Runtime, flight: Flight, caller: Caller) -> list[StreamEvent] | None:
    """Return what the spool tells of a call that is made again before the log knows of it; None: nothing.

    :raises LogUnavailable: if the spool cannot be read, or what the log makes of it is not known yet
    """
    spool, proposed, ordinal = runtime.spool, flight.proposed, 1
    while spool is not None:
        known, other = await _look(runtime, spool, flight, proposed)
        if known is None:
            break
        if _is_unsettled(known):
            await catch_up(runtime, proposed.user_id, key=proposed.key)
            continue
        told = await _told(runtime, spool, proposed, known, other, caller)
        if told is not None:
            flight.settled = True
            return told
        ordinal += 1
        proposed = replace(proposed, key=ordinal_key(flight.proposed.key, ordinal))
    return None


async def _look(
    runtime: Runtime, spool: Spool, flight: Flight, proposed: Proposed
) -> tuple[Kept | None, Flight | None]:
    """Return what is spooled under a key, and the flight under it: one that ended meanwhile, if that explains it."""
    before = runtime.flights.another(flight, proposed.key)
    known = await spool.find(proposed)
    after = runtime.flights.another(flight, proposed.key)
    return known, after if known is None else after or before


async def _told(
    runtime: Runtime, spool: Spool, proposed: Proposed, known: Kept | None, other: Flight | None, caller: Caller
) -> list[StreamEvent] | None:
    """Return what is to be yielded of a call that is known here; None: its key is another's, or it proves nothing."""
    opening = known.proposed if known is not None else other.proposed if other is not None else None
    if opening is None or not same_call(opening, proposed):
        return None
    if known is not None and known.outcome is not None:
        return None if _is_bare(proposed) else [opening, known.outcome]
    if other is not None or (known is not None and known.holder == "other"):
        return await _refuse(runtime, spool, proposed, caller)
    closing = await spool.end(opening, orphaned(opening), 0)
    return None if _is_bare(proposed) else [opening, closing]


async def _refuse(runtime: Runtime, spool: Spool, proposed: Proposed, caller: Caller) -> list[StreamEvent]:
    """Spool a repetition of a running call under a key of its own, denied."""
    number, began = 1, time_ns()
    while True:
        again = replace(proposed, id=new_id(), key=duplicate_key(proposed.key, number), late=True)
        refusal = replace(denied(again, Deny("duplicate", "duplicate", RUNNING)), late=True)
        if await spool.begin(again, refusal) is None:
            runtime.telemetry.not_run(again, refusal, caller, began)
            return [again, refusal]
        number += 1
