"""Files in arguments: bytes that a model gives as base64, with a name and a type where it says them."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final

import msgspec

from engine.api.headers import header_value
from engine.api.media import MediaType
from engine.refusals import quoted
from events.errors import Refused

__all__ = ("File",)

_DATA_URL: Final = re.compile(r"data:([^;,]*)(?:;[^;,]+)*;base64,")
_BLANKS: Final = re.compile(r"\s+")
_PLAIN: Final = str.maketrans("-_", "+/")


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it is sent. ``filename`` None: it is sent without one."""

    content: bytes
    filename: str | None = None
    content_type: str | None = None

    @staticmethod
    def of(argument: str, value: Any) -> File:
        """Read a file: base64 text, a base64 ``data:`` URL, or ``{"content", "filename", "content_type"}`` with either.

        :raises Refused: if it is none of these, or its type is no media type
        """
        if isinstance(value, str):
            return _of_text(argument, value)
        stated = value if isinstance(value, dict) else {}
        content, filename, content_type = (stated.get(key) for key in ("content", "filename", "content_type"))
        if not isinstance(content, str) or not isinstance(filename or "", str):
            raise Refused(f'Parameter {quoted(argument)} must be base64 text, or {{"content": base64, "filename": …}}.')
        file = _of_text(argument, content)
        if content_type is not None and not MediaType.of(str(content_type)).name:
            raise Refused(f"The content_type of parameter {quoted(argument)} is no media type.")
        header_value("Content-Type", str(content_type or ""))
        return File(content=file.content, filename=filename or None, content_type=content_type or file.content_type)


def _of_text(argument: str, text: str) -> File:
    found = _DATA_URL.match(text)
    # Both alphabets, with or without the padding: models leave it out.
    packed = _BLANKS.sub("", text[found.end() :] if found else text).rstrip("=").translate(_PLAIN)
    try:
        content = base64.b64decode(packed + "=" * (-len(packed) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise Refused(f"Parameter {quoted(argument)} is not valid base64.") from None
    stated = MediaType.of(found[1]).name if found else ""
    return File(content=content, content_type=stated or None)
