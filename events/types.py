"""The nine typed events of a tool call's life, and the envelope readers get (DESIGN 4)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

__all__ = (
    "Approved",
    "Artifact",
    "Confirmed",
    "DenialReason",
    "Denied",
    "Effect",
    "Executed",
    "Failed",
    "FailureKind",
    "LateOutcome",
    "PauseType",
    "Paused",
    "Proposed",
    "Recorded",
    "ResultStatus",
    "Resumed",
    "StreamEvent",
    "ToolEvent",
)

Effect: TypeAlias = Literal["read", "write", "destroy"]
PauseType: TypeAlias = Literal["awaiting_approval", "requires_client_execution", "requires_input"]
DenialReason: TypeAlias = Literal["headless", "rejected", "denylist", "policy", "expired", "superseded", "duplicate"]
ResultStatus: TypeAlias = Literal["completed", "error"]
FailureKind: TypeAlias = Literal[
    "invalid_call",
    "unknown_tool",
    "invalid_arguments",
    "load",
    "exception",
    "timeout",
    "cancelled",
    "orphaned",
]


class _Fact(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True, gc=False):
    """What every event says: whose call of which tool it speaks of."""

    id: str
    key: str
    call_id: str
    message_id: str | None = None
    user_id: str | None = None
    tool_id: str | None = None
    tool_name: str
    action_name: str
    llm_name: str
    labels: dict[str, str] = {}
    late: bool = False
    position: int | None = None


class Proposed(_Fact, frozen=True, kw_only=True, tag="proposed"):
    """A model proposed a call; durable before anything is done about it.

    :ivar raw: what the model sent, where ``arguments`` are not simply that
    :ivar note: what was mended in it to read it; None: nothing was, or it could not be read
    :ivar vouched: the agent's list named its row: the user need not own it, nor have it shared
    """

    arguments: Any
    raw: str | None = None
    note: str | None = None
    digest: str
    fingerprint: str
    effect: Effect = "write"
    idempotent: bool = False
    headless: bool = False
    run_id: str | None = None
    conversation_id: str | None = None
    agent_id: str | None = None
    vouched: bool = False
    extra: dict[str, Any] = {}
    worker: str
    traceparent: str | None = None


class Paused(_Fact, frozen=True, kw_only=True, tag="paused"):
    """The call waits for a person, for its client, or for input a server asked for."""

    pause_type: PauseType
    reason: str
    rule: str | None = None
    expires_at: datetime | None = None
    arguments: Any = None
    request: Any = None
    old_fingerprint: str | None = None
    new_fingerprint: str | None = None


class Denied(_Fact, frozen=True, kw_only=True, tag="denied"):
    """The call will not run; ``message`` tells the model why."""

    reason: DenialReason
    rule: str | None = None
    by: str | None = None
    message: str


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file a tool made."""

    id: str
    filename: str | None = None
    ref: str | None = None


class Executed(_Fact, frozen=True, kw_only=True, tag="executed"):
    """The tool ran to its end.

    ``result`` is the whole result where it is in hand. Read from the log, a result past 400,000 characters is its
    head, with ``result_length`` (characters) and ``result_digest`` (SHA-256, hex) naming the payload that has it all,
    and ``result_format`` saying whether that payload is the text itself or JSON text. ``duration`` is in seconds.
    """

    status: ResultStatus = "completed"
    result: Any = None
    result_length: int | None = None
    result_digest: str | None = None
    result_format: Literal["text", "json"] | None = None
    preview: str = ""
    artifact_id: str | None = None
    artifacts: tuple[Artifact, ...] = ()
    resolved: dict[str, Any] = {}
    guard: str | None = None
    duration: float = 0.0
    rule: str | None = None


class Failed(_Fact, frozen=True, kw_only=True, tag="failed"):
    """The call did not come to a result."""

    kind: FailureKind
    message: str
    exception_type: str | None = None
    rule: str | None = None


class Approved(_Fact, frozen=True, kw_only=True, tag="approved"):
    """A person allowed the call; ``arguments`` is set only where the approver edited them (``{}`` is an edit too)."""

    by: str
    comment: str | None = None
    digest: str
    fingerprint: str
    arguments: Any | msgspec.UnsetType = msgspec.UNSET


class Resumed(_Fact, frozen=True, kw_only=True, tag="resumed"):
    """One worker claimed the call and will run it."""

    worker: str
    takeover: bool = False
    answer: Any | msgspec.UnsetType = msgspec.UNSET


class Confirmed(_Fact, frozen=True, kw_only=True, tag="confirmed"):
    """The agent loop has stored the message that carries the result."""


class LateOutcome(_Fact, frozen=True, kw_only=True, tag="late_outcome"):
    """An outcome that arrived after its attempt was closed: kept, changes no status."""

    outcome: Executed | Failed | Denied


ToolEvent: TypeAlias = Proposed | Paused | Denied | Executed | Failed | Approved | Resumed | Confirmed | LateOutcome

StreamEvent: TypeAlias = Proposed | Paused | Denied | Executed | Failed
"""The five kinds that ``execute`` yields."""

E = TypeVar("E", covariant=True)


class Recorded(msgspec.Struct, Generic[E], frozen=True, kw_only=True, gc=False):
    """An event as it stands in the log.

    ``position`` is unique and rising over the whole log, ``version`` counts within the stream from 1 (Proposed), and
    ``recorded_at`` is UTC.
    """

    position: int
    key: str
    version: int
    recorded_at: datetime
    user_id: str | None
    event: E
