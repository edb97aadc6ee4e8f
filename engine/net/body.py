"""A response's body: unpacked, and never more of it than is allowed, whatever the response says of itself."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import Any, Final

import anyio.lowlevel

from engine.net.errors import BadResponse, NetError, ResponseTooLarge

__all__ = ("ACCEPTED", "Body")

ACCEPTED: Final = "gzip"
"""What a request says that it can unpack."""

_PIECE: Final = 64 * 1024
_GZIP: Final = ("gzip", "x-gzip")
_PLAIN: Final = ("", "identity")


class Body:
    """Iterates over a body's pieces, unpacked, of 64 KiB at most where it was packed.

    What is given out is never more than allowed.

    :ivar is_cut: whether it was more, or broken, and ended early
    :raises ResponseTooLarge: in the reading, as soon as more has come than allowed, before anything has if the response
        says so; unless the rest is to be left
    :raises BadResponse: in the reading, if it breaks off or is packed otherwise than said or asked for; likewise
    """

    def __init__(
        self,
        pieces: AsyncIterator[bytes],
        encoding: str,
        largest: int,
        *,
        declared: str = "",
        leave_rest: bool = False,
    ) -> None:
        """Read nothing yet.

        :param encoding: the header Content-Encoding, "" if there is none
        :param declared: the header Content-Length, "" if there is none, or no body either
        :param largest: bytes, unpacked
        :param leave_rest: end quietly at the limit, and where it is broken
        """
        self.is_cut = False
        self._pieces = pieces
        self._encoding = encoding.strip().lower()
        self._unpack = _Gunzip() if self._encoding in _GZIP else None
        self._largest = self._left = largest
        self._leave_rest = leave_rest
        self._is_known_larger = not leave_rest and _exceeds(declared, largest)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self.is_cut:
            raise StopAsyncIteration
        if self._is_known_larger:
            return self._ended(b"", self._too_large())
        try:
            piece = await (self._plain() if self._unpack is None else self._unpacked(self._unpack))
        except BadResponse as error:
            return self._ended(b"", error)
        if len(piece) > self._left:
            return self._ended(piece[: self._left], self._too_large())
        self._left -= len(piece)
        return piece

    def _ended(self, piece: bytes, error: NetError) -> bytes:
        self.is_cut = True
        if not self._leave_rest:
            raise error
        return piece

    def _too_large(self) -> ResponseTooLarge:
        return ResponseTooLarge(f"it is larger than {self._largest} bytes")

    async def _plain(self) -> bytes:
        if self._encoding not in _PLAIN:
            raise BadResponse("it is encoded in a way that was not asked for")
        return await anext(self._pieces)

    async def _unpacked(self, unpack: _Gunzip) -> bytes:
        # One byte more than allowed tells a bomb, of which no more is unpacked.
        at_most = min(_PIECE, self._left + 1)
        while True:
            while unpack.is_fed:
                await anyio.lowlevel.checkpoint()
                if piece := unpack.take(at_most):
                    return piece
            try:
                unpack.feed(await anext(self._pieces))
            except StopAsyncIteration:
                unpack.finish()
                raise


def _exceeds(declared: str, largest: int) -> bool:
    # int() refuses more than 4300 digits.
    return declared.isascii() and declared.isdigit() and (len(declared) > 18 or int(declared) > largest)


class _Gunzip:
    """Unpacks gzip, one member after another, so many bytes at a time."""

    def __init__(self) -> None:
        self._packed = b""
        self._member: Any = None

    @property
    def is_fed(self) -> bool:
        """Whether something may be left to unpack."""
        return bool(self._packed)

    def feed(self, packed: bytes) -> None:
        """Take in what came next."""
        self._packed += packed

    def take(self, at_most: int) -> bytes:
        """Return the next bytes; none: feed more. :raises BadResponse: if it is no gzip"""
        if self._member is None:
            self._member = zlib.decompressobj(wbits=31)
        try:
            piece: bytes = self._member.decompress(self._packed, at_most)
        except zlib.error:
            raise BadResponse("its gzip encoding is broken") from None
        self._packed = self._member.unconsumed_tail
        if self._member.eof:
            self._packed, self._member = self._member.unused_data, None
        return piece

    def finish(self) -> None:
        """Take the end. :raises BadResponse: if it came too early"""
        if self._member is not None:
            raise BadResponse("its gzip encoding is broken")
