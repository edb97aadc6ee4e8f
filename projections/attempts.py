"""``tool_call_attempts``: how the state table follows the log, inside the log's own transaction (DESIGN 5)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace

from events.codec import encode_json
from events.store import Guard, StateChange, StoredEvent
from events.transitions import Requirement, advance, requirement, some_state_before
from events.types import Approved, Denied, Executed, Failed, LateOutcome, Paused, Proposed, Resumed, ToolEvent

__all__ = ("INSERT_COLUMNS", "UPDATE_COLUMNS", "AttemptsProjection")

INSERT_COLUMNS: tuple[str, ...] = (
    "call_id",
    "message_id",
    "run_id",
    "tool_id",
    "tool_name",
    "action_name",
    "arguments",
    "digest",
    "status",
    "gate",
    "pause_type",
    "rule",
    "expires_at",
    "result_status",
    "result",
    "error",
    "artifact_id",
    "worker",
    "headless",
    "conversation_id",
    "agent_id",
    "llm_name",
    "effect",
    "idempotent",
    "fingerprint",
    "late",
    "traceparent",
)

UPDATE_COLUMNS: tuple[str, ...] = (
    "status",
    "gate",
    "pause_type",
    "rule",
    "expires_at",
    "result_status",
    "result",
    "error",
    "artifact_id",
    "arguments",
    "worker",
    "fingerprint",
    "late",
)
"""None keeps what the row has, with two exceptions: where ``gate`` is given, ``pause_type`` and ``expires_at`` become
what is given, None included; and ``late`` is only ever set."""


_UNTOUCHED = MappingProxyType(dict.fromkeys(UPDATE_COLUMNS))
_insert_values = itemgetter(*INSERT_COLUMNS)
_update_values = itemgetter(*UPDATE_COLUMNS)


class AttemptsProjection:
    """The inline projection of ``tool_call_attempts`` (see ``events.store.InlineProjection``)."""

    table = "tool_call_attempts"
    insert_columns = INSERT_COLUMNS
    update_columns = UPDATE_COLUMNS
    postgres_function = "calljournal_append_1"

    def change(self, events: Sequence[ToolEvent], texts: Sequence[StoredEvent]) -> StateChange:
        """Return what an append's events do to the row.

        :raises TransitionRejected: if the later events cannot follow the first, whatever the row's state
        """
        first = events[0]
        if len(events) > 1:
            _require_legal_sequence(events)
        elif type(first) is Executed and not first.late:
            return StateChange(_guard(requirement(first)), _ended(first, texts[0]))
        if isinstance(first, Proposed):
            values = _opening(first)
            if len(events) == 1:
                return StateChange(None, values)
            made = dict(zip(INSERT_COLUMNS, values, strict=True))
            for event, text in zip(events[1:], texts[1:], strict=True):
                _apply(made, event, text)
            return StateChange(None, _insert_values(made))
        row: dict[str, Any] = _UNTOUCHED.copy()
        for event, text in zip(events, texts, strict=True):
            _apply(row, event, text)
        return StateChange(_guard_of(events), _update_values(row))


def _decisive(events: Sequence[ToolEvent]) -> ToolEvent:
    """Return the event that says what the row must be: a late outcome leaves that to what comes after it."""
    return next((event for event in events if not isinstance(event, LateOutcome)), events[0])


def _require_legal_sequence(events: Sequence[ToolEvent]) -> None:
    attempt = None if isinstance(events[0], Proposed) else some_state_before(_decisive(events))
    for event in events:
        attempt = advance(attempt, event)


def _guard_of(events: Sequence[ToolEvent]) -> Guard:
    guard = _guard(requirement(_decisive(events)))
    # What a later event asks of the whole call, the events before it cannot bring about.
    if not guard.idempotent and any(requirement(event).idempotent for event in events[1:]):
        return replace(guard, idempotent=True)
    return guard


_RULED = (Executed, Failed, Denied, Paused)


@lru_cache(maxsize=256)
def _guard(rule: Requirement) -> Guard:
    return Guard(
        statuses=" ".join(rule.status or ()),
        phases=None if rule.phases is None else " ".join(sorted(rule.phases)),
        not_late=rule.not_late,
        idempotent=rule.idempotent,
    )


def _opening(event: Proposed) -> tuple[Any, ...]:
    """Return the new row's values, in the order of INSERT_COLUMNS."""
    return (
        event.call_id,
        event.message_id,
        event.run_id,
        event.tool_id,
        event.tool_name,
        event.action_name,
        encode_json(event.arguments).decode(),
        event.digest,
        "proposed",
        "open",
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        event.worker,
        event.headless,
        event.conversation_id,
        event.agent_id,
        event.llm_name,
        event.effect,
        event.idempotent,
        event.fingerprint,
        event.late,
        event.traceparent,
    )


def _ended(event: Executed, text: StoredEvent) -> tuple[Any, ...]:
    """Return what most calls end with, in the order of UPDATE_COLUMNS; the same as :func:`_apply` makes of it."""
    return (
        "executed",
        None,
        None,
        event.rule,
        None,
        event.status,
        text.result,
        None,
        event.artifact_id,
        None,
        None,
        None,
        None,
    )


def _apply(row: dict[str, Any], event: ToolEvent, text: StoredEvent) -> None:
    """Write one event's effect into the row's new values; a column that stays as it is, is not touched."""
    rule = requirement(event)
    if rule.gives is not None:
        row["status"] = rule.gives
    if rule.gate is not None:
        row["gate"] = rule.gate
        row["pause_type"] = rule.pause_type
        row["expires_at"] = None
    if event.late or isinstance(event, LateOutcome):
        row["late"] = True
    match event:
        case Executed():
            row["result_status"] = event.status
            row["result"] = text.result
            row["artifact_id"] = event.artifact_id
        case Failed():
            row["error"] = event.message
        case Denied():
            row["error"] = f"{event.reason}: {event.message}"
        case Paused():
            row["expires_at"] = event.expires_at
            row["fingerprint"] = event.new_fingerprint or row["fingerprint"]
        case Approved() if not isinstance(event.arguments, msgspec.UnsetType):
            row["arguments"] = encode_json(event.arguments).decode()
        case Resumed():
            row["worker"] = event.worker
        case _:
            pass
    if isinstance(event, _RULED) and event.rule is not None:
        row["rule"] = event.rule
