"""What happened: the typed events, the log they stand in, the subscriptions to it."""

from events.errors import (
    Conflict,
    JournalError,
    LogUnavailable,
    NotFound,
    Refused,
    SchemaMismatch,
    TransitionRejected,
    Unavailable,
    VersionConflict,
)
from events.log import Append, EventLog
from events.subscription import Subscription
from events.types import (
    Approved,
    Artifact,
    Confirmed,
    Denied,
    Executed,
    Failed,
    LateOutcome,
    Paused,
    Proposed,
    Recorded,
    Resumed,
    ToolEvent,
)
from events.wire import chat_record, to_wire

__all__ = (
    "Append",
    "Approved",
    "Artifact",
    "Confirmed",
    "Conflict",
    "Denied",
    "EventLog",
    "Executed",
    "Failed",
    "JournalError",
    "LateOutcome",
    "LogUnavailable",
    "NotFound",
    "Paused",
    "Proposed",
    "Recorded",
    "Refused",
    "Resumed",
    "SchemaMismatch",
    "Subscription",
    "ToolEvent",
    "TransitionRejected",
    "Unavailable",
    "VersionConflict",
    "chat_record",
    "to_wire",
)
