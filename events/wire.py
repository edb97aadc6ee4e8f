"""The light copies of events: for browsers, and for the chat's own storage (BEHAVIOUR 72, 124)."""

from __future__ import annotations

from typing import Any

import msgspec

from events.masking import masked
from events.transitions import kind_of
from events.types import Denied, Executed, Failed, LateOutcome, Proposed, ToolEvent

__all__ = ("chat_record", "to_wire")

_HEAVY = frozenset(
    {
        "resolved",
        "preview",
        "result_length",
        "result_digest",
        "result_format",
        "raw",
        "extra",
        "digest",
        "fingerprint",
        "worker",
        "vouched",
        "traceparent",
        "outcome",
    }
)


def to_wire(event: ToolEvent) -> dict[str, Any]:
    """Return the event as JSON content fit for a browser: the preview in place of the result, nothing internal.

    What is stored sealed is shown as ``***``.

    Fields at their default are left out, except an Executed's ``status`` and ``artifact_id``.
    """
    wire = {name: value for name, value in _content(event).items() if name not in _HEAVY}
    if "arguments" in wire:
        wire["arguments"] = masked(wire["arguments"])
    if isinstance(event, Executed):
        wire["result"] = event.preview
        wire["status"] = event.status
        wire["artifact_id"] = event.artifact_id
    if isinstance(event, LateOutcome):
        wire["outcome"] = to_wire(event.outcome)
    return wire


def _content(event: ToolEvent) -> dict[str, Any]:
    if isinstance(event, Executed):
        # A result may be long: it is left out before anything is converted.
        event = msgspec.structs.replace(event, result=None)
    content = msgspec.to_builtins(event)
    content["type"] = kind_of(event)
    return dict(content)


def chat_record(proposed: Proposed, outcome: Executed | Failed | Denied) -> dict[str, Any]:
    """Return what a chat stores of one call: its names, arguments, cut result and status (BEHAVIOUR 124)."""
    record: dict[str, Any] = {
        "tool_name": proposed.tool_name,
        "call_id": proposed.call_id,
        "action_name": proposed.action_name,
        "arguments": masked(proposed.arguments),
        "artifact_id": None,
        "result": outcome.preview if isinstance(outcome, Executed) else outcome.message,
        "status": outcome.status if isinstance(outcome, Executed) else "error",
    }
    if isinstance(outcome, Executed):
        record["artifact_id"] = outcome.artifact_id
        if outcome.artifacts:
            record["artifacts"] = msgspec.to_builtins(outcome.artifacts)
    if device := proposed.labels.get("device_id"):
        record["device_id"] = device
    return record
