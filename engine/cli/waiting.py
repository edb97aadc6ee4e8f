"""Calls that wait for a decision, or to be run after one, as the command line shows them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta
from shlex import quote
from typing import Any, Literal

import msgspec
from rich.text import Text

from engine.cli.durations import duration_text
from engine.cli.plain import json_text, one_line
from events.log import EventLog
from events.masking import masked
from events.types import Approved, Effect, Paused
from projections.listing import Wanted, list_attempts
from projections.row import AttemptRow

__all__ = ("WaitingCall", "list_waiting", "waiting_lines")


class WaitingCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call that waits.

    :ivar state: waits for an approval, or for somebody to resume it
    :ivar user_id: whose it is: only this tenant may decide, None: only who names none
    :ivar arguments: those that would run
    :ivar seconds: how long it has waited
    :ivar approved_by: who approved it
    """

    key: str
    state: Literal["awaiting_approval", "approved"]
    user_id: str | None
    tool_id: str | None
    tool_name: str
    action_name: str
    llm_name: str
    effect: Effect
    arguments: Any
    reason: str
    rule: str | None
    conversation_id: str | None
    since: datetime
    seconds: float
    expires_at: datetime | None
    approved_by: str | None


async def list_waiting(log: EventLog, wanted: Wanted) -> AsyncIterator[WaitingCall]:
    """Yield the calls that wait for an approval or were approved, in the order in which they were proposed.

    :raises LogUnavailable: if the log cannot be read
    """
    async for row in list_attempts(log, wanted):
        match row.attempt.phase:
            case "paused:awaiting_approval":
                yield await _waiting(log, row, "awaiting_approval")
            case "approved":
                yield await _waiting(log, row, "approved")
            case _:
                continue


async def _waiting(log: EventLog, row: AttemptRow, state: Literal["awaiting_approval", "approved"]) -> WaitingCall:
    paused: Paused | None = None
    approval: Approved | None = None
    async for record in log.read_stream(row.key, user_id=row.user_id):
        paused = record.event if isinstance(record.event, Paused) else paused
        approval = record.event if isinstance(record.event, Approved) else approval
    return WaitingCall(
        key=row.key,
        state=state,
        user_id=row.user_id,
        tool_id=row.tool_id,
        tool_name=row.tool_name,
        action_name=row.action_name,
        llm_name=row.llm_name,
        effect=row.effect,
        arguments=masked(row.arguments),
        reason="" if paused is None else paused.reason,
        rule=row.rule,
        conversation_id=row.conversation_id,
        since=row.updated_at,
        seconds=(datetime.now(UTC) - row.updated_at).total_seconds(),
        expires_at=None if paused is None else paused.expires_at,
        approved_by=None if approval is None else approval.by,
    )


def waiting_lines(call: WaitingCall) -> Iterable[Text]:
    """Return a call as people decide on it: everything whole, and the command that goes on."""
    whose = "calls without a user" if call.user_id is None else f"user {call.user_id}"
    head = (one_line(f"{call.tool_name}.{call.action_name}"), "bold"), f"  {call.effect}  of {one_line(whose)}"
    yield Text.assemble((one_line(call.key), "bold cyan"), "  ", *head)
    yield Text(f"  {json_text(call.arguments)}")
    age = duration_text(timedelta(seconds=call.seconds))
    if call.state == "approved":
        said = f"approved by {call.approved_by} {age} ago, and not run"
    else:
        said = f"waits for {age}: {call.reason} ({call.rule})"
    yield Text(f"  {one_line(said)}{_until(call.expires_at)}", style="yellow")
    verb = "resume" if call.state == "approved" else "approve"
    user = "" if call.user_id is None else f" --user {quote(call.user_id)}"
    yield Text(f"  {one_line(f'calljournal {verb} {quote(call.key)}{user}')}", style="dim")


def _until(moment: datetime | None) -> str:
    if moment is None:
        return ""
    left = moment - datetime.now(UTC)
    return f"; for {duration_text(left)} more" if left > timedelta(0) else "; its time is over"
