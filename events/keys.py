"""Names of things: journal keys, digests, event ids, and the tenant's column form."""

from __future__ import annotations

import hashlib
import os
import random
import time
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import msgspec

from events.errors import Refused

__all__ = (
    "MAX_KEY_LENGTH",
    "call_digest",
    "canonical_bytes",
    "digest_of",
    "duplicate_key",
    "is_plain",
    "journal_key",
    "new_id",
    "ordinal_key",
    "require_storable",
    "tenant_column",
    "tenant_of",
)

MAX_KEY_LENGTH = 2000
_VARIANT = MappingProxyType({digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"})
# An id must be new, not secret: asking the system for every one takes longer than all else about it. A source of its
# own, which nobody seeds; a forked process seeds it anew.
_random = random.Random()  # noqa: S311
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.seed)
_canonical = msgspec.json.Encoder(order="sorted")


def new_id() -> str:
    """Return a fresh uuid7 (RFC 9562, 5.7): 48 bits of Unix milliseconds, then random bits."""
    moment, bits = f"{time.time_ns() // 1_000_000:012x}", f"{_random.getrandbits(76):019x}"
    return f"{moment[:8]}-{moment[8:]}-7{bits[:3]}-{_VARIANT[bits[3]]}{bits[4:7]}-{bits[7:]}"


def journal_key(call_id: str, message_id: str | None, run_id: str | None) -> str:
    """Return the stream's name (DESIGN 3): ``message:call``, else ``run:call``, else the bare call id."""
    scope = message_id if message_id is not None else run_id
    return call_id if scope is None else f"{scope}:{call_id}"


def ordinal_key(key: str, ordinal: int) -> str:
    """Return the name of the ``ordinal``-th different call that arrived under one key; the first has the key itself."""
    return key if ordinal <= 1 else f"{key}#{ordinal}"


def duplicate_key(key: str, number: int) -> str:
    """Return the name under which the ``number``-th refused repetition of a running call is kept."""
    return f"{key}~d{number}"


def tenant_column(user_id: str | None) -> str:
    """Encode a tenant for a NOT NULL column, so that None is a tenant of its own and matches only None."""
    return "" if user_id is None else "u" + user_id


def tenant_of(column: str) -> str | None:
    """Undo :func:`tenant_column`."""
    return column[1:] if column else None


def canonical_bytes(value: Any) -> bytes:
    """Encode JSON content with sorted keys: the same value gives the same bytes on every machine and store.

    :raises Refused: if the value has no JSON form
    """
    try:
        return _canonical.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Refused(f"this value has no JSON form: {error}") from error


def digest_of(*parts: bytes) -> str:
    """Return the SHA-256 (hex) of the parts, each preceded by its length, so that no two lists collide."""
    return hashlib.sha256(_joined(*parts)).hexdigest()


def _joined(*parts: bytes) -> bytes:
    return b"".join([len(part).to_bytes(8, "big") + part for part in parts])


def call_digest(tool_id: str | None, action_name: str, arguments: Any) -> str:
    """Return what decides duplicates: the digest of (tool id, action, arguments in their journalled form)."""
    content = canonical_bytes(arguments)
    return hashlib.sha256(_called(tool_id, action_name) + len(content).to_bytes(8, "big") + content).hexdigest()


@lru_cache(maxsize=1024)
def _called(tool_id: str | None, action_name: str) -> bytes:
    return _joined(canonical_bytes(tool_id), action_name.encode())


def is_plain(text: str) -> bool:
    """Tell whether every part of a text is sure to pass :func:`require_storable`."""
    return len(text) <= MAX_KEY_LENGTH and text.isascii() and "\x00" not in text


def require_storable(text: str | None, what: str, limit: int = MAX_KEY_LENGTH) -> None:
    """Refuse an identifier that one of the databases could not store.

    :raises Refused: if it holds NUL or a lone surrogate, or is longer than ``limit`` bytes of UTF-8
    """
    if text is None:
        return
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        raise Refused(f"{what} holds half of a surrogate pair, which no database stores") from None
    if "\x00" in text:
        raise Refused(f"{what} holds a NUL character, which no database stores")
    if size > limit:
        raise Refused(f"{what} is {size} bytes long; at most {limit} are allowed")
