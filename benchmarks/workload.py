"""The events that are appended: a proposal and its outcome, 400 bytes each as stored."""

from __future__ import annotations

from functools import lru_cache
from secrets import token_hex

import msgspec

from events.codec import Codec
from events.keys import call_digest, journal_key, new_id, tenant_column
from events.store import StreamAppend
from events.types import Executed, Proposed, ToolEvent
from projections.attempts import AttemptsProjection

__all__ = ("EVENT_BYTES", "USER", "Pair", "make_pairs", "prepared")

EVENT_BYTES = 400
USER = "user-1"


class Pair(msgspec.Struct, frozen=True):
    """One call's two events."""

    proposed: Proposed
    executed: Executed

    @property
    def key(self) -> str:
        """The stream of both."""
        return self.proposed.key

    @property
    def events(self) -> tuple[ToolEvent, ...]:
        """Both, in order."""
        return (self.proposed, self.executed)


def make_pairs(count: int) -> list[Pair]:
    """Return the events of ``count`` calls, each of a message of its own."""
    return [_pair(*_fillers()) for _ in range(count)]


@lru_cache(maxsize=1)
def _fillers() -> tuple[str, str]:
    """Return the texts that bring both events to their size."""
    pair = _pair("", "")
    sizes = [len(prepared(event, 0).events[0].data) for event in (pair.proposed, pair.executed)]
    return "x" * (EVENT_BYTES - sizes[0]), "x" * (EVENT_BYTES - sizes[1])


def _pair(argument: str, result: str) -> Pair:
    # Random, as most ids in the field are: each new stream then falls on a page of its own of the index.
    message = f"m{token_hex(8)}"
    call = "call_1"
    arguments = {"q": argument}
    fields = {
        "key": journal_key(call, message, None),
        "call_id": call,
        "message_id": message,
        "user_id": USER,
        "tool_id": "t1",
        "tool_name": "noop",
        "action_name": "run",
        "llm_name": "run",
    }
    opening = {"digest": call_digest("t1", "run", arguments), "fingerprint": "f" * 16, "worker": "w"}
    return Pair(
        msgspec.convert({**fields, "type": "proposed", "id": new_id(), "arguments": arguments, **opening}, Proposed),
        msgspec.convert({**fields, "type": "executed", "id": new_id(), "result": result}, Executed),
    )


def prepared(event: ToolEvent, expected_version: int) -> StreamAppend:
    """Return an event as the product hands it to a store: the rows of the bare loops are taken from it."""
    stored = (Codec().encode(event).stored,)
    change = AttemptsProjection().change([event], stored)
    return StreamAppend(tenant_column(event.user_id), event.key, expected_version, stored, change)
