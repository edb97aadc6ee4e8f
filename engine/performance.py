"""From an allowed call to its tool's ending: arguments sorted, tool loaded, action run (steps 5, 7 and 8)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from engine.actions import Action
from engine.arguments import Resolved, sort_arguments
from engine.context import CallContext
from engine.contract import Tool, ToolContext
from engine.delegations import is_delegated, record_delegation
from engine.flight import Flight
from engine.loading import LoadFailure, is_async, takes_context, without_secrets
from engine.proposal import Proposal
from engine.running import Broke, Run
from engine.runtime import Runtime
from engine.toolstore import BoundStore
from events.errors import LogUnavailable
from events.keys import tenant_column

__all__ = ("Performance", "perform")

_UNRECORDED: Final = (
    "The tool was not run: it would use its owner's credentials for somebody else, and that could not be recorded."
)


class Performance(msgspec.Struct, frozen=True):
    """How a call's tool ended, and what it was given."""

    run: Run
    action: Action
    resolved: Resolved
    tool: Tool | None = None


async def perform(runtime: Runtime, flight: Flight, proposal: Proposal, context: CallContext) -> Performance:
    """Load and run a call's tool; whatever goes wrong there is part of the result.

    :raises BaseException: only a cancellation from outside, or KeyboardInterrupt
    """
    action, member = proposal.action, proposal.member
    assert action is not None
    assert member is not None
    assert member.tool is not None
    resolved = sort_arguments(action, flight.proposed.arguments)
    try:
        tool = await runtime.instances.load(member.tool, member.row, context.user_id)
        if is_delegated(member.row, context.user_id):
            await record_delegation(runtime, flight.proposed, member.row)
    except LoadFailure as error:
        return Performance(_not_loaded(str(error), error), action, resolved)
    except LogUnavailable as error:
        return Performance(_not_loaded(_UNRECORDED, error), action, resolved)
    arguments: list[Any] = [action.name]
    if takes_context(type(tool)):
        arguments.append(tool_context(runtime, flight, action, member.row.id, context))
    method = tool.execute_action
    call = partial(method, *arguments, **resolved.kwargs)
    run = await runtime.runner.run(call, is_async(method), action.timeout, flight.begin)
    if isinstance(run, Broke):
        # A tool's own errors quote what it was configured with all too often.
        run = replace(run, message=without_secrets(run.message, tool.config))
    return Performance(run, action, resolved, tool)


def _not_loaded(why: str, error: Exception) -> Broke:
    return Broke("load", why, type(error).__name__, error)


def tool_context(runtime: Runtime, flight: Flight, action: Action, tool_id: str, context: CallContext) -> ToolContext:
    """Return what a tool may know of this one call."""
    return ToolContext(
        user_id=context.user_id,
        message_id=context.message_id,
        call_id=flight.proposed.call_id,
        conversation_id=context.conversation_id,
        run_id=context.run_id,
        agent_id=context.agent_id,
        attachments=tuple(context.attachments),
        idempotency_key=flight.proposed.key,
        deadline=datetime.now(UTC) + timedelta(seconds=action.timeout),
        progress=_ignore_progress,
        annotate=_unseen if flight.span is None else flight.span.annotate,
        store=BoundStore(runtime.log.store, tenant_column(context.user_id), tool_id),
        request=flight.request,
        answer=flight.answer,
    )


def _ignore_progress(done: float, total: float | None, message: str) -> None:
    """Take no notice: nobody listens yet."""


def _unseen(name: str, value: str | bool | int | float) -> None:
    """Take no notice: the call has no span."""
