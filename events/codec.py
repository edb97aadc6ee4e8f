"""Events to text and back: one encoder, schema versions, upcasting, and the split of long results (DESIGN 4)."""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import force_setattr, replace

from events.store import Payload, StoredEvent
from events.transitions import kind_of
from events.types import Executed, ToolEvent

__all__ = (
    "INLINE_LIMIT",
    "SCHEMA_VERSIONS",
    "Codec",
    "Encoded",
    "Upcaster",
    "decode_json",
    "encode_json",
    "whole_result",
)

INLINE_LIMIT = 400_000
"""Characters of a result that are kept in its event."""

_PIECE = 1 << 22
"""Characters that are hashed or decoded at one go."""

SCHEMA_VERSIONS: Mapping[str, int] = MappingProxyType(
    {
        "proposed": 1,
        "paused": 1,
        "denied": 1,
        "executed": 1,
        "failed": 1,
        "approved": 1,
        "resumed": 1,
        "confirmed": 1,
        "late_outcome": 1,
    }
)
"""The schema version this release writes, per kind. A raised number needs an upcaster from the one before."""

Upcaster: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]

_UPCASTERS: Mapping[tuple[str, int], Upcaster] = MappingProxyType({})

_encoder = msgspec.json.Encoder()


def encode_json(value: Any) -> bytes:
    """Encode JSON content as the log does. :raises TypeError: if the value has no JSON form"""
    return _encoder.encode(value)


def decode_json(text: str | bytes) -> Any:
    """Decode JSON text. :raises msgspec.DecodeError: if it is not JSON"""
    return msgspec.json.decode(text)


class Encoded(msgspec.Struct, frozen=True, gc=False):
    """An event in its stored form: what to write, the payload that goes beside it, and the event itself."""

    stored: StoredEvent
    event: ToolEvent
    payload: Payload | None = None


class Codec:
    """Encodes with the newest schema version, decodes every version there has ever been.

    :param upcasters: ``(kind, version)`` to a function that turns the JSON object of that version into the next one's
    :param versions: the newest version per kind
    """

    def __init__(
        self,
        upcasters: Mapping[tuple[str, int], Upcaster] = _UPCASTERS,
        versions: Mapping[str, int] = SCHEMA_VERSIONS,
    ) -> None:
        self._upcasters = upcasters
        self._versions = versions
        self._decoder: msgspec.json.Decoder[ToolEvent] = msgspec.json.Decoder(ToolEvent)

    @property
    def standard(self) -> bool:
        """Whether this is what ``Codec()`` makes, in another process too."""
        return type(self) is Codec and self._upcasters is _UPCASTERS and self._versions is SCHEMA_VERSIONS

    def is_current(self, kind: str, schema_version: int) -> bool:
        """Whether this is the newest schema version of a kind that this release knows."""
        return self._versions.get(kind) == schema_version

    def encode(self, event: ToolEvent, result_json: bytes | None = None) -> Encoded:
        """Return the stored form; ``result_json`` saves encoding an Executed's result where it is encoded already.

        A result past :data:`INLINE_LIMIT` characters becomes its head, and the whole a payload.
        """
        if isinstance(event, Executed):
            return self._encode_executed(event, result_json)
        kind = kind_of(event)
        return Encoded(StoredEvent(event.id, kind, self._versions[kind], _encoder.encode(event).decode()), event)

    def _encode_executed(self, event: Executed, result_json: bytes | None) -> Encoded:
        encoded = _encoder.encode(event.result) if result_json is None else result_json
        payload = None
        if len(encoded) > INLINE_LIMIT:
            event, encoded, payload = _split(event, encoded)
        body = _encoder.encode(replace(event, result=msgspec.Raw(encoded)))
        version = self._versions["executed"]
        return Encoded(StoredEvent(event.id, "executed", version, body.decode(), encoded.decode()), event, payload)

    def decode(self, kind: str, schema_version: int, data: str | bytes, position: int) -> ToolEvent | None:
        """Return the event, upcast where it is old; None for a kind or version this release does not know.

        :raises msgspec.DecodeError: if the text is not what this kind and version must look like
        """
        current = self._versions.get(kind)
        if current is None or schema_version > current:
            return None
        event = self._decoder.decode(data) if schema_version == current else self._upcast(kind, schema_version, data)
        force_setattr(event, "position", position)
        return event

    def _upcast(self, kind: str, version: int, data: str | bytes) -> ToolEvent:
        content = msgspec.json.decode(data, type=dict[str, Any])
        while version < self._versions[kind]:
            content = self._upcasters[kind, version](content)
            version += 1
        event: ToolEvent = msgspec.convert(content, ToolEvent)
        return event


def _split(event: Executed, encoded: bytes) -> tuple[Executed, bytes, Payload | None]:
    """Return (event with length and digest, JSON of what the event keeps, the whole as a payload)."""
    is_text = isinstance(event.result, str)
    text = event.result if is_text else _text_of(encoded)
    if len(text) <= INLINE_LIMIT:
        return event, encoded, None
    digest = _digest_of(text) if is_text else hashlib.sha256(encoded).hexdigest()
    whole = replace(event, result_length=len(text), result_digest=digest, result_format="text" if is_text else "json")
    return whole, _encoder.encode(text[:INLINE_LIMIT]), Payload(digest, len(text), text)


# What is long is worked on in pieces: one call holds the interpreter until it is done, in whatever thread it is.


def _digest_of(text: str) -> str:
    hashing = hashlib.sha256()
    for start in range(0, len(text), _PIECE):
        hashing.update(text[start : start + _PIECE].encode())
    return hashing.hexdigest()


def _text_of(encoded: bytes) -> str:
    if len(encoded) <= _PIECE:
        return encoded.decode()
    decoder = codecs.getincrementaldecoder("utf-8")()
    return "".join([decoder.decode(encoded[start : start + _PIECE]) for start in range(0, len(encoded), _PIECE)])


def whole_result(event: Executed, content: str) -> Executed:
    """Return the event with its whole result, from its payload's content."""
    return replace(event, result=content if event.result_format == "text" else decode_json(content))
