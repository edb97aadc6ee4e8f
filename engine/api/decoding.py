"""Bodies that came back, as JSON content, as text, or as the bytes they are (CASES API-11)."""

from __future__ import annotations

import codecs
import json
from base64 import b64encode
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, Literal

import msgspec

from engine.api.media import MediaType
from engine.net.reply import Reply

__all__ = ("Content", "decoded", "text_in")

_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_STARTS: Final = tuple(mark for mark, _ in _MARKS)
_MAGIC: Final = (b"%PDF-", b"PK\x03\x04", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"\x1f\x8b", b"OggS", b"wOF")
_UNTOLD: Final = ("utf-8", "idna", "punycode", "unicode-escape", "unicode_escape", "raw-unicode-escape", "undefined")
"""Codecs by which a text is not read because a server names them: what is UTF-8 is seen, the others are Python's."""

_WIDE: Final = ("utf-16", "utf16", "utf-32", "utf32", "ucs-2")
_CUT: Final = "It was not read to its end: what is given is its beginning, as text."
_UNREAD: Final = "It is too large, and was not read."
_INVALID: Final = "It is declared as JSON and is none: it is given as text."
_HTML: Final = "It is declared as JSON and is HTML or XML (often an error or login page): it is given as text."


class Content(msgspec.Struct, frozen=True):
    """What a body holds: JSON content, and what there is to say about it.

    :ivar kind: what the data is: parsed JSON, text, a description of bytes
    """

    data: Any
    notes: tuple[str, ...] = ()
    kind: Literal["json", "text", "bytes"] = "text"


def decoded(reply: Reply) -> Content:
    """Return what a reply's body holds; never raises, whatever it says of itself.

    JSON is parsed, other text decoded, anything else kept: ``{"content_type", "bytes", "sha256", "base64"}``. Nothing
    at all is null.
    """
    media, body = MediaType.of(reply.header("content-type")), reply.body
    if not body:
        return Content(None, (_UNREAD,) if reply.is_cut else ())
    if _is_bytes(body, media):
        return _kept(reply)
    if reply.is_cut:
        return Content(text_in(body, media.charset), (_CUT,))
    if media.is_json or (not media.name and body.lstrip()[:1] in (b"{", b"[")):
        return _parsed(text_in(body, _json_charset(body, media)), bool(media.name))
    return Content(text_in(body, media.charset))


def text_in(body: bytes, charset: str | None) -> str:
    """Return a body as text: by its byte order mark, the charset it declares, else UTF-8, else Windows-1252.

    What a charset does not have becomes U+FFFD.
    """
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body.decode(name, "replace")
    with suppress(LookupError, ValueError):
        name = codecs.lookup(charset or "utf-8").name
        if name not in _UNTOLD:
            return body.decode(name, "replace")
    try:
        # A body that was cut may end within a character.
        return codecs.getincrementaldecoder("utf-8")().decode(body)
    except ValueError:
        return body.decode("cp1252", "replace")


def _json_charset(body: bytes, media: MediaType) -> str | None:
    found = json.detect_encoding(body)
    return media.charset if found == "utf-8" else found


def _is_bytes(body: bytes, media: MediaType) -> bool:
    if media.is_bytes or body.startswith(_MAGIC):
        return True
    if media.is_text or (media.charset or "").lower().startswith(_WIDE) or body.startswith(_STARTS):
        return False
    # Of another type, or none: text where it says in which charset, or where it is UTF-8.
    return (media.charset is None or not media.name) and not _is_utf8(body)


def _is_utf8(body: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(body[:65536])
    except ValueError:
        return False
    return b"\x00" not in body[:1024]


def _kept(reply: Reply) -> Content:
    content = {
        "content_type": reply.header("content-type") or "application/octet-stream",
        "bytes": len(reply.body),
        "sha256": sha256(reply.body).hexdigest(),
        "base64": b64encode(reply.body).decode(),
    }
    if not reply.is_cut:
        return Content(content, (), "bytes")
    return Content({**content, "truncated": True}, ("It was not read to its end.",), "bytes")


class _Strange:
    """What a JSON text holds that JSON does not have, or not twice."""

    def __init__(self) -> None:
        self.twice: str | None = None
        self.numbers: set[str] = set()

    def object_of(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs) and self.twice is None:
            names = [name for name, _ in pairs]
            self.twice = next(name for name in names if names.count(name) > 1)
        return content

    def constant(self, name: str) -> None:
        self.numbers.add(name)

    def notes(self) -> tuple[str, ...]:
        twice = () if self.twice is None else (f'Its key "{self.twice[:100]}" comes more than once: the last counts.',)
        numbers = () if not self.numbers else (f"It holds {', '.join(sorted(self.numbers))}, given as null.",)
        return twice + numbers


def _parsed(text: str, declared: bool) -> Content:
    if not text.strip():
        return Content(None)
    strange = _Strange()
    try:
        data = json.loads(text, object_pairs_hook=strange.object_of, parse_constant=strange.constant)
    except (ValueError, RecursionError):
        if not declared:
            return Content(text)
        return Content(text, (_HTML if text.lstrip().startswith("<") else _INVALID,))
    return Content(data, strange.notes(), "json")
