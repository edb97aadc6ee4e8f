"""From an allowed call to its tool's ending: arguments sorted, tool loaded, action run (steps 5, 7 and 8)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from engine.actions import Action
from engine.arguments import Resolved, sort_arguments
from engine.concealing import Concealing
from engine.context import CallContext
from engine.contract import Tool, ToolContext
from engine.credentials import CredentialsError
from engine.delegations import is_delegated, record_delegation
from engine.flight import Flight
from engine.loading import LoadFailure, is_async, takes_context, without_secrets
from engine.proposal import Proposal
from engine.request_settings import request_row
from engine.running import Broke, Run
from engine.runtime import Runtime
from engine.toolstore import BoundStore
from events.errors import LogUnavailable
from events.keys import tenant_column
from events.types import Proposed

__all__ = ("Performance", "ignore_progress", "perform")

_UNRECORDED: Final = (
    "The tool was not run: it would use its owner's credentials for somebody else, and that could not be recorded."
)


class _Given(msgspec.Struct, frozen=True, gc=False):
    arguments: Any
    request: Any
    answer: Any


class Performance(msgspec.Struct, frozen=True):
    """How a call's tool ended, and what it was given."""

    run: Run
    action: Action
    resolved: Resolved
    tool: Tool | None = None
    hidden: Concealing | None = None

    def buckets(self, proposed: Proposed) -> dict[str, Any]:
        """Return what the tool was given, by bucket, as the journal keeps it."""
        given, hidden = self.resolved.buckets(), self.hidden
        if hidden is None:
            return given
        return {name: hidden.arguments(arguments, proposed) for name, arguments in given.items()}


async def perform(runtime: Runtime, flight: Flight, proposal: Proposal, context: CallContext) -> Performance:
    """Load and run a call's tool; whatever goes wrong there is part of the result.

    :raises BaseException: only a cancellation from outside, or KeyboardInterrupt
    """
    action, member = proposal.action, proposal.member
    assert action is not None
    assert member is not None
    assert member.tool is not None
    hidden, given, resolved = proposal.hidden, None, Resolved()
    try:
        if hidden is not None:
            given = _revealed(hidden, flight)
        resolved = sort_arguments(action, flight.proposed.arguments if given is None else given.arguments)
        if hidden is not None:
            hidden = hidden.with_values(*resolved.buckets().values())
        row = request_row(member.row, action, resolved)
        tool = await runtime.instances.load(member.tool, row, context.user_id)
        if is_delegated(member.row, context.user_id):
            await record_delegation(runtime, flight.proposed, member.row)
    except (LoadFailure, CredentialsError) as error:
        return Performance(_not_loaded(str(error), error), action, resolved, hidden=hidden)
    except LogUnavailable as error:
        return Performance(_not_loaded(_UNRECORDED, error), action, resolved, hidden=hidden)
    arguments: list[Any] = [action.name]
    if takes_context(type(tool)):
        arguments.append(tool_context(runtime, flight, action, member.row.id, context, given, hidden))
    method = tool.execute_action
    call = partial(method, *arguments, **resolved.kwargs)
    run = await runtime.runner.run(call, is_async(method), action.timeout, flight.begin)
    if isinstance(run, Broke):
        # A tool's own errors quote what it was configured with all too often.
        said = run.message if hidden is None else hidden.text(run.message)
        run = replace(run, message=without_secrets(said, tool.config))
    return Performance(run, action, resolved, tool, hidden)


def _not_loaded(why: str, error: Exception) -> Broke:
    return Broke("load", why, type(error).__name__, error)


def _revealed(hidden: Concealing, flight: Flight) -> _Given:
    """Return what a call is given, with its secrets in their places."""
    kept = flight.proposed.arguments, flight.request, flight.answer
    return _Given(*[hidden.revealed(each, flight.proposed) for each in kept])


def tool_context(
    runtime: Runtime,
    flight: Flight,
    action: Action,
    tool_id: str,
    context: CallContext,
    given: _Given | None,
    hidden: Concealing | None,
) -> ToolContext:
    """Return what a tool may know of this one call."""
    assert flight.span is not None
    annotate = flight.span.annotate
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
        progress=ignore_progress,
        annotate=annotate if hidden is None else partial(_annotate, annotate, hidden),
        store=BoundStore(runtime.log.store, tenant_column(context.user_id), tool_id),
        request=flight.request if given is None else given.request,
        answer=flight.answer if given is None else given.answer,
    )


def _annotate(annotate: Callable[..., None], hidden: Concealing, name: str, value: str | bool | int | float) -> None:
    annotate(name, hidden.text(value) if isinstance(value, str) else value)


def ignore_progress(done: float, total: float | None, message: str) -> None:
    """Take no notice: nobody listens yet."""
