"""One row of ``tool_call_attempts`` as a typed value."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import msgspec

from events.keys import journal_key
from events.transitions import Attempt, Gate, Status, describe
from events.types import Effect, PauseType, ResultStatus

__all__ = ("AttemptRow",)

_DUPLICATE = re.compile(r"(#\d+)?~d\d+")


class AttemptRow(msgspec.Struct, frozen=True, gc=False):
    """The state of one call, column by column; ``arguments`` and ``result`` are JSON content.

    ``stream`` is the log's number of the stream, ``version`` how many events it has, ``position`` that of the last one.
    A result past 400,000 characters is its head here; ``EventLog.whole`` has the rest.
    """

    stream: int
    user_id: str | None
    key: str
    call_id: str
    message_id: str | None
    run_id: str | None
    tool_id: str | None
    tool_name: str
    action_name: str
    arguments: Any
    digest: str
    status: Status
    gate: Gate
    pause_type: PauseType | None
    rule: str | None
    expires_at: datetime | None
    result_status: ResultStatus | None
    result: Any
    error: str | None
    artifact_id: str | None
    worker: str
    headless: bool
    conversation_id: str | None
    agent_id: str | None
    llm_name: str
    effect: Effect
    idempotent: bool
    fingerprint: str
    late: bool
    traceparent: str | None
    proposed_at: datetime
    updated_at: datetime
    version: int
    position: int

    @property
    def attempt(self) -> Attempt:
        """The part that the lifecycle speaks of."""
        return Attempt(
            status=self.status,
            gate=self.gate,
            pause_type=self.pause_type,
            late=self.late,
            idempotent=self.idempotent,
            version=self.version,
        )

    @property
    def duplicate(self) -> bool:
        """Whether this is a refused repetition of a running call (``key~d1``), not a call of its own."""
        base = journal_key(self.call_id, self.message_id, self.run_id)
        return self.key.startswith(base) and _DUPLICATE.fullmatch(self.key, len(base)) is not None

    def __repr__(self) -> str:
        late = " late" if self.late else ""
        what = f"{self.tool_name}.{self.action_name}"
        return f"<AttemptRow {self.key} {describe(self.attempt)} v{self.version}{late} {what}>"
