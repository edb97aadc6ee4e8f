"""What a tool is given with a call, for tools that are called without an engine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from engine.contract import ToolContext

__all__ = ("tool_context",)


class _NoStore:
    tenant = ""
    tool_id = "t1"
    dialect = "sqlite"

    async def read(self, statement: Any) -> Sequence[Any]:
        raise AssertionError

    async def write(self, *statements: Any) -> list[int]:
        raise AssertionError


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
        store=_NoStore(),
        annotate=kept.__setitem__,
        request=request,
        answer=answer,
    )
