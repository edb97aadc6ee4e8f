"""From a call to its proposal: what the model meant, and whether it may run as far as that is known beforehand."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from engine.actions import Action
from engine.arguments import ArgumentChecker
from engine.call import ToolCall
from engine.concealing import Concealing
from engine.context import CallContext
from engine.gate import Deny, GateQuestion, Pause, check_pause
from engine.journalled import journal_form
from engine.parsing import ParsedCall, ToolActionParser, as_meant
from engine.refusals import arguments_text, refusal_text
from engine.remembered import NOTHING, Remembered
from engine.schemas import Prepared
from engine.secret_book import SecretBook
from engine.toolset import Member, Toolset
from events.errors import JournalError
from events.keys import call_digest, journal_key, new_id
from events.types import FailureKind, Proposed

__all__ = ("Origin", "Proposal", "Refusal", "Verdict", "needs_memory", "propose", "question_of", "storable")


_PARSER: Final = ToolActionParser(quiet=True)
_NAME: Final = 500
"""Characters of a name that are kept: a model may invent any."""


class Origin(msgspec.Struct, frozen=True, gc=False):
    """Where a proposal is made: by which worker, in which trace."""

    worker: str
    traceparent: str | None = None


class Refusal(msgspec.Struct, frozen=True):
    """Why a call cannot run, whatever the gate says; ``message`` is for the model."""

    kind: FailureKind
    message: str


Verdict: TypeAlias = Refusal | Pause | Deny


class Proposal(msgspec.Struct, frozen=True, gc=False):
    """A call ready to be journalled.

    :ivar proposed: the event, under the call's first key
    :ivar verdict: what follows it at once; None: the tool runs, if it allows that itself where it is still unasked
    :ivar action: what would run; None where the name led nowhere
    :ivar question: what the gate is asked; None where the call cannot run anyway
    :ivar hidden: how the call's secrets are kept; None: it has none
    :ivar warnings: why the call may be invented; not logged yet, for it may be proposed again with newer rows
    """

    proposed: Proposed
    verdict: Verdict | None
    action: Action | None = None
    member: Member | None = None
    question: GateQuestion | None = None
    hidden: Concealing | None = None
    warnings: tuple[str, ...] = ()


def propose(
    call: ToolCall,
    context: CallContext,
    toolset: Toolset,
    prepared: Prepared | None,
    origin: Origin,
    checker: ArgumentChecker,
    secrets: SecretBook,
    remembered: Remembered = NOTHING,
) -> Proposal:
    """Return the proposal of a call; never raises on account of what the model sent, and does no I/O.

    From here on arguments are in their journalled form: what is journalled is validated, approved and run. Secrets are
    references and sealed values there.

    :param remembered: what the conversation has called; see :func:`needs_memory`
    """
    parsed = _PARSER.parse(call, toolset.names(prepared, remembered))
    action = member = None
    if parsed.tool_id is not None and parsed.action_name is not None:
        member = toolset.member(parsed.tool_id)
        action = toolset.action(parsed.tool_id, parsed.action_name)
    if action is not None and prepared is not None and parsed.llm_name in prepared.strict:
        parsed = as_meant(parsed, action, call.arguments)
    arguments = None if parsed.arguments is None else journal_form(parsed.arguments)
    proposed = _event(call, context, parsed, arguments, action, member, origin)
    refusal = _refusal(parsed, arguments, action, partial(toolset.callable_names, prepared, remembered), checker)
    if action is None or member is None:
        return Proposal(proposed, refusal, action, member, warnings=parsed.warnings)
    hidden = secrets.of(member.row, action, context.user_id)
    if hidden is not None:
        proposed, refusal = _concealed(hidden, proposed, refusal)
    if refusal is not None:
        return Proposal(proposed, refusal, action, member, hidden=hidden, warnings=parsed.warnings)
    question = question_of(action, member, context)
    decision = None if question.unasked else check_pause(question)
    verdict = decision if isinstance(decision, Pause | Deny) else None
    return Proposal(proposed, verdict, action, member, question, hidden, parsed.warnings)


def _concealed(hidden: Concealing, proposed: Proposed, refusal: Refusal | None) -> tuple[Proposed, Refusal | None]:
    """Return a proposal without its secrets; one whose secrets are not to be had cannot run."""
    problem = hidden.problem
    try:
        kept = hidden.proposed(proposed)
    except JournalError as error:
        kept, problem = hidden.without_values(proposed), problem or str(error)
    kept = replace(kept, digest=_digest(kept.tool_id, kept.action_name, kept.arguments, kept.raw, kept.note))
    if problem is not None:
        return kept, Refusal("load", problem)
    return kept, None if refusal is None else Refusal(refusal.kind, hidden.text(refusal.message))


def needs_memory(call: ToolCall, context: CallContext, prepared: Prepared | None) -> bool:
    """Tell whether what a call's name means depends on what its conversation has called before."""
    return context.conversation_id is not None and (prepared is None or call.name not in prepared.names)


def _event(
    call: ToolCall,
    context: CallContext,
    parsed: ParsedCall,
    arguments: object,
    action: Action | None,
    member: Member | None,
    origin: Origin,
) -> Proposed:
    call_id = storable(call.id) or f"call_{new_id()}"
    raw = None if parsed.raw is None else storable(parsed.raw)
    tool_id = None if member is None else member.row.id
    # A name that leads to no row of the turn is taken for what it is: the model's own, whole.
    action_name = storable(parsed.llm_name if member is None else parsed.action_name, _NAME) or "unknown"
    return Proposed(
        id=new_id(),
        key=journal_key(call_id, context.message_id, context.run_id),
        call_id=call_id,
        message_id=context.message_id,
        user_id=context.user_id,
        tool_id=tool_id,
        tool_name="unknown" if member is None else member.row.name,
        action_name=action_name,
        llm_name=storable(parsed.llm_name, _NAME),
        arguments=arguments,
        raw=raw,
        note=parsed.note,
        digest=_digest(tool_id, action_name, arguments, raw, parsed.note),
        fingerprint="" if action is None or member is None else member.fingerprints[action.name],
        effect="write" if action is None else action.effect,
        idempotent=False if action is None else action.idempotent,
        headless=context.headless,
        run_id=context.run_id,
        conversation_id=context.conversation_id,
        agent_id=context.agent_id,
        vouched=context.vouched,
        extra=_extra(call.extra),
        worker=origin.worker,
        traceparent=origin.traceparent,
    )


def _digest(tool_id: str | None, action_name: str, arguments: object, raw: str | None, note: str | None) -> str:
    # Arguments that could not be read are told apart by their text.
    return call_digest(tool_id, action_name, arguments if raw is None or note else [arguments, raw])


def storable(text: str | None, limit: int | None = None) -> str:
    """Return text that every database stores: what a model sends as a name or an id is not always that.

    :param limit: characters of it that are kept
    """
    if not text:
        return ""
    if text.isascii() and "\x00" not in text:
        return text[:limit]
    return str(journal_form(text))[:limit]


def _extra(extra: dict[str, Any]) -> dict[str, Any]:
    if not extra:
        return {}
    kept = journal_form(extra)
    return kept if isinstance(kept, dict) else {"extra": kept}


def _refusal(
    parsed: ParsedCall,
    arguments: object,
    action: Action | None,
    names: Callable[[], tuple[str, ...]],
    checker: ArgumentChecker,
) -> Refusal | None:
    if not parsed.llm_name.strip():
        return Refusal("invalid_call", refusal_text("", names()))
    if action is None:
        known = names()
        stale = parsed.action_name if parsed.llm_name in known else None
        return Refusal("unknown_tool", refusal_text(stale or parsed.llm_name, known))
    problem = parsed.problem or checker.validate(action, arguments)
    if problem is None:
        return None
    return Refusal("invalid_arguments", arguments_text(parsed.llm_name, problem, names()))


def question_of(action: Action, member: Member, context: CallContext) -> GateQuestion:
    """Return what the gate is asked of a call, as far as that is known before its tool and the rules are asked."""
    return GateQuestion(
        client_side=action.client_side,
        requires_approval=action.require_approval,
        live_gate=action.live_gate,
        headless=context.headless,
        allowlisted=member.row.id in map(str, context.tool_allowlist),
    )
