"""What a response is: its first bytes say it, before its content type does."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from engine.web.document import Unreadable

__all__ = ("DOCUMENTS", "WebKind", "kind_of")

WebKind = Literal["html", "json", "text", "pdf", "docx", "pptx", "xlsx"]

DOCUMENTS: Final = MappingProxyType(
    {
        "pdf": ("a PDF", "pypdfium2"),
        "docx": ("a Word document", "mammoth"),
        "pptx": ("a presentation", "pptx"),
        "xlsx": ("a spreadsheet", "openpyxl"),
    }
)
"""Of each kind that must be converted: what it is, and the module that does it."""

_PARTS: Final[tuple[tuple[WebKind, bytes], ...]] = (
    ("docx", b"word/document.xml"),
    ("pptx", b"ppt/presentation.xml"),
    ("xlsx", b"xl/workbook.xml"),
)
_TEXTUAL: Final = frozenset(
    ("application/xhtml+xml", "application/xml", "application/json", "application/ld+json", "application/yaml")
)
_BINARY: Final = (
    b"PK\x03\x04",
    b"\x89PNG",
    b"GIF8",
    b"\xff\xd8\xff",
    b"\x1f\x8b",
    b"OggS",
    b"\x00\x01\x00\x00",
    b"wOF",
    b"\xd0\xcf\x11\xe0",
    b"{\\rtf",
)
_WIDE: Final = ("utf-16", "utf-32", "utf16", "utf32", "ucs-2", "unicode")
_END: Final = b"PK\x05\x06"
_LOOKS_LIKE_JSON: Final = re.compile(rb"^(?:\xef\xbb\xbf)?\s*[{\[]")
_LOOKS_LIKE_HTML: Final = re.compile(
    rb"<(?:!doctype|html|head|body|title|p|h[1-6]|div|a|table|ul|br|meta)\b", re.IGNORECASE
)


def kind_of(body: bytes, content_type: str, charset: str | None) -> WebKind:
    """Return what a body is to be read as.

    :raises Unreadable: if it is neither text nor a document that can be converted
    """
    document = _document(body)
    if document is not None:
        return document
    if not _is_textual(content_type):
        raise Unreadable(f"URL returned content type '{content_type}', which is no text.")
    if _is_binary(body, charset):
        raise Unreadable("URL returned binary content, which cannot be read as text.")
    if content_type == "application/json" or content_type.endswith("+json"):
        return "json"
    if content_type not in ("", "text/html", "application/xhtml+xml"):
        return "text"
    if _is_json(body):
        return "json"
    return "html" if content_type or _LOOKS_LIKE_HTML.search(body[:4096]) else "text"


def _document(body: bytes) -> WebKind | None:
    if body.startswith(b"%PDF-"):
        return "pdf"
    if not body.startswith(b"PK\x03\x04"):
        return None
    names = _directory(body)
    return next((kind for kind, part in _PARTS if part in names), None)


def _directory(body: bytes) -> bytes:
    """Return the part of an archive that names its files, in it and not in archives within it."""
    end = body.rfind(_END)
    if end < 0:
        return b""
    size, start = (int.from_bytes(body[end + at : end + at + 4], "little") for at in (12, 16))
    return body[start : start + size]


def _is_textual(content_type: str) -> bool:
    """Tell whether a content type is text; none given: the body decides."""
    return (
        not content_type
        or content_type.startswith("text/")
        or content_type in _TEXTUAL
        or content_type.endswith(("+xml", "+json"))
    )


def _is_binary(body: bytes, charset: str | None) -> bool:
    if body.startswith(_BINARY):
        return True
    wide = body.startswith((b"\xff\xfe", b"\xfe\xff")) or (charset or "").lower().startswith(_WIDE)
    return b"\x00" in body[:1024] and not wide


def _is_json(body: bytes) -> bool:
    if not _LOOKS_LIKE_JSON.match(body[:1024]):
        return False
    try:
        msgspec.json.decode(body.removeprefix(b"\xef\xbb\xbf"), type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
