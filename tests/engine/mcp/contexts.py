"""What a tool is given with a call, for tools that are called without an engine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from engine.contract import ToolContext
from tests.engine.api.calls import NoStore

__all__ = ("tool_context",)


def tool_context(
    *, seconds: float = 30.0, request: Any = None, answer: Any = msgspec.UNSET, notes: dict[str, Any] | None = None
) -> ToolContext:
    """Return the context of a call.

    :param notes: takes what the tool says of its call's span
    """
    kept = {} if notes is None else notes
    return ToolContext(
        user_id="u",
        message_id="m",
        call_id="c1",
        conversation_id=None,
        run_id=None,
        agent_id=None,
        attachments=(),
        idempotency_key="m:c1",
        deadline=datetime.now(UTC) + timedelta(seconds=seconds),
        progress=lambda done, total, text: None,
        store=NoStore(),
        annotate=kept.__setitem__,
        request=request,
        answer=answer,
    )
