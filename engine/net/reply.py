"""What came back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeAlias

import msgspec

from engine.net.body import Body

__all__ = ("Answer", "Headers", "Reply", "charset_in", "header_in")

Headers: TypeAlias = tuple[tuple[str, str], ...]
"""Names and values in the order of the wire, a name as often as it was sent."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A response with its body.

    :ivar url: what was requested in the end, without fragment; its query string is in it
    :ivar content_type: in lower case, without parameters; "" if there is none
    :ivar charset: as the content type names it; it may be nonsense
    :ivar body: decoded
    :ivar is_cut: whether the body of a status of error was longer, or broken, and what stands here is its beginning
    :ivar hops: how many redirects led here
    """

    url: str
    status: int
    headers: Headers
    content_type: str
    charset: str | None
    body: bytes
    is_cut: bool = False
    hops: int = 0

    def __repr__(self) -> str:
        return f"<Reply {self.status}, {len(self.body)} bytes>"

    def header(self, name: str) -> str | None:
        """Return the first value of a header, whatever its case."""
        return header_in(self.headers, name)


class Answer:
    """A response whose body is still to be read: iterate over it, once; its pieces come decoded.

    The attributes are those of :class:`Reply`.
    """

    def __init__(self, url: str, status: int, headers: Headers, body: Body, hops: int) -> None:
        self.url = url
        self.status = status
        self.headers = headers
        self.hops = hops
        self.content_type, _, self._parameters = _parted(header_in(headers, "content-type"))
        self._body = body

    def __repr__(self) -> str:
        return f"<Answer {self.status}>"

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._body

    async def read(self) -> Reply:
        """Read the body to its end. :raises NetError: as :class:`engine.net.body.Body` says"""
        body = bytearray()
        async for piece in self._body:
            body += piece
        return self.replied(body, self._body.is_cut)

    def replied(self, body: bytes | bytearray, is_cut: bool) -> Reply:
        """Return the response with what was read of its body.

        :param is_cut: it is not the whole
        """
        return Reply(
            url=self.url,
            status=self.status,
            headers=self.headers,
            content_type=self.content_type,
            charset=self.charset,
            body=bytes(body),
            is_cut=is_cut,
            hops=self.hops,
        )

    @property
    def charset(self) -> str | None:
        """The charset that the content type names."""
        return charset_in(self._parameters)

    def header(self, name: str) -> str | None:
        """Return the first value of a header, whatever its case."""
        return header_in(self.headers, name)


def header_in(headers: Headers, name: str) -> str | None:
    """Return the first value of a header, whatever its case."""
    wanted = name.lower()
    return next((value for key, value in headers if key.lower() == wanted), None)


def charset_in(parameters: str) -> str | None:
    """Return the charset among a content type's parameters."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'") or None
    return None


def _parted(content_type: str | None) -> tuple[str, str, str]:
    kind, semicolon, parameters = (content_type or "").partition(";")
    return kind.strip().lower(), semicolon, parameters
