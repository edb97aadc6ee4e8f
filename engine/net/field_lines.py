"""The headers of a request as they go out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, TypeAlias

from engine.net.errors import NetError

__all__ = ("CREDENTIALS", "FRAMING", "checked_fields")

FRAMING: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that say how a message is framed and where it goes: the client's business."""

CREDENTIALS: Final = frozenset({"authorization", "cookie", "cookie2"})
"""Headers that always carry credentials."""

_Fields: TypeAlias = list[tuple[bytes, bytes]]

_NAME: Final = re.compile(rb"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_VALUE: Final = re.compile(rb"(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?")


def checked_fields(host: bytes, given: Iterable[tuple[bytes, bytes]], *unwanted: bytes) -> _Fields:
    """Return a request's headers with the Host that it has by its URL.

    :param unwanted: names to leave out, in lower case, besides Host
    :raises NetError: if one is none that HTTP allows; found here, for the HTTP library writes such a value to its log
    """
    left_out = (b"host", *unwanted)
    fields = [(b"Host", host), *(each for each in given if each[0].lower() not in left_out)]
    if not all(_NAME.fullmatch(name) and _VALUE.fullmatch(value) for name, value in fields):
        raise NetError("the request holds characters that HTTP does not allow")
    return fields
