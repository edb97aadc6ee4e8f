"""What a spool keeps of a call: its events in their stored form, so that a later release can read them too."""

from __future__ import annotations

import time
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from events.codec import SCHEMA_VERSIONS, Codec, encode_json
from events.transitions import kind_of
from events.types import Denied, Executed, Failed, Proposed, ToolEvent

__all__ = ("Late", "SpoolEntry", "decode_entry", "encode_entry", "proposed_in", "same_call", "spooled", "told_in")

Late: TypeAlias = Denied | Executed | Failed
"""What may follow a proposal and is spooled; a pause never is, nor is what allows or claims a call."""


class StoredFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """One event: its kind, its schema version, its JSON text whole, and its position if it is in the log."""

    kind: str
    schema_version: int
    data: msgspec.Raw
    position: int | None = None


class SpoolEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One record of a spool, about the call that has the proposal of this id.

    :ivar at: Unix seconds
    :ivar proposed: the proposal, unless it stands before in the same file
    :ivar outcome: what followed it
    :ivar version: the version of its stream in the log; 0: the proposal is not in the log
    :ivar told: the outcome was yielded; otherwise it is dropped where the call has moved on
    :ivar claim: the id of the Resumed by which the call was its worker's, if that may not be in the log
    :ivar written: what stands of the call before this is in the log by now
    """

    proposal: str
    at: float
    proposed: StoredFact | None = None
    outcome: StoredFact | None = None
    version: int = 0
    told: bool = True
    claim: str | None = None
    written: bool = False


_decoder: msgspec.json.Decoder[SpoolEntry] = msgspec.json.Decoder(SpoolEntry)


def spooled(
    proposal: str,
    *,
    proposed: Proposed | None = None,
    outcome: Late | None = None,
    version: int = 0,
    told: bool = True,
    claim: str | None = None,
) -> SpoolEntry:
    """Return the entry of some events, as of now."""
    return SpoolEntry(
        proposal=proposal,
        at=time.time(),
        proposed=None if proposed is None else _stored(proposed),
        outcome=None if outcome is None else _stored(outcome),
        version=version,
        told=told,
        claim=claim,
    )


def encode_entry(entry: SpoolEntry) -> bytes:
    """Return an entry's bytes."""
    return encode_json(entry)


def decode_entry(content: bytes) -> SpoolEntry:
    """Return an entry. :raises msgspec.DecodeError: if it is none"""
    return _decoder.decode(content)


def _stored(event: ToolEvent) -> StoredFact:
    kind = kind_of(event)
    return StoredFact(kind, SCHEMA_VERSIONS[kind], msgspec.Raw(encode_json(event)), event.position)


def proposed_in(entry: SpoolEntry, codec: Codec) -> Proposed | None:
    """Return an entry's proposal. :raises msgspec.DecodeError: if this release cannot read it"""
    event = _event(entry.proposed, codec)
    assert event is None or isinstance(event, Proposed)
    return event


def told_in(entry: SpoolEntry, codec: Codec) -> Late | None:
    """Return an entry's outcome. :raises msgspec.DecodeError: if this release cannot read it"""
    event = _event(entry.outcome, codec)
    assert event is None or isinstance(event, Late)
    return event


def _event(fact: StoredFact | None, codec: Codec) -> ToolEvent | None:
    if fact is None:
        return None
    event = codec.decode(fact.kind, fact.schema_version, bytes(fact.data), 0)
    if event is None:
        raise msgspec.DecodeError(f"this release does not know {fact.kind} in version {fact.schema_version}")
    return replace(event, position=fact.position)


def same_call(one: Proposed, other: Proposed) -> bool:
    """Tell whether two proposals are of the same call (DESIGN 3, Key)."""
    return _identity(one) == _identity(other)


def _identity(proposed: Proposed) -> tuple[str | None, ...]:
    return proposed.user_id, proposed.call_id, proposed.message_id, proposed.run_id, proposed.digest
