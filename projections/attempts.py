"""``tool_call_attempts``: how the state table follows the log, inside the log's own transaction (DESIGN 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from events.store import Guard, StateChange, StoredEvent
from events.transitions import Requirement, requirement
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
