"""Ready-made units for tests of stores: real events, encoded as the log encodes them."""

from __future__ import annotations

from typing import Any, TypeVar

from events.codec import Codec
from events.keys import call_digest, journal_key, new_id, tenant_column
from events.store import StreamAppend
from events.transitions import requirement
from events.types import (
    Approved,
    Confirmed,
    Denied,
    Executed,
    Failed,
    LateOutcome,
    Paused,
    Proposed,
    Resumed,
    ToolEvent,
)
from projections.attempts import AttemptsProjection

__all__ = ("append", "follow", "proposed")

E = TypeVar("E", Approved, Confirmed, Denied, Executed, Failed, LateOutcome, Paused, Resumed)

_codec = Codec()
_projection = AttemptsProjection()


def proposed(call_id: str, *, message_id: str | None = "m", user_id: str | None = "u", **fields: Any) -> Proposed:
    """Return a proposal of a call."""
    fields = {"arguments": {}, "worker": "w", "tool_name": "counter", "action_name": "bump"} | fields
    return Proposed(
        id=new_id(),
        key=journal_key(call_id, message_id, None),
        call_id=call_id,
        message_id=message_id,
        user_id=user_id,
        llm_name="bump",
        digest=call_digest(None, fields["action_name"], fields["arguments"]),
        fingerprint="f",
        **fields,
    )


def follow(kind: type[E], first: Proposed, /, **fields: Any) -> E:
    """Return a later event of the same call."""
    return kind(
        id=new_id(),
        key=first.key,
        call_id=first.call_id,
        message_id=first.message_id,
        user_id=first.user_id,
        tool_name=first.tool_name,
        action_name=first.action_name,
        llm_name=first.llm_name,
        **fields,
    )


def append(*events: ToolEvent, after: int = 0, dead_worker: str | None = None) -> StreamAppend:
    """Return the events as one append to a stream that is at version ``after``."""
    encoded = [_codec.encode(event) for event in events]
    stored = tuple([entry.stored for entry in encoded])
    return StreamAppend(
        tenant_column(events[0].user_id),
        events[0].key,
        after,
        stored,
        _projection.change(events, stored),
        tuple([entry.payload for entry in encoded if entry.payload is not None]),
        dead_worker,
        after > 0 and requirement(events[0]).repeatable,
    )
