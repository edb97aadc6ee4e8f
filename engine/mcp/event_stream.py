"""Server-sent events (the HTML standard, 9.2.6) from a response, read so that it may be left at any point."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from types import TracebackType
from typing import Final

import httpx2
import msgspec

from engine.net.errors import ResponseTooLarge

__all__ = ("Event", "EventStream")

_BOM: Final = b"\xef\xbb\xbf"
_LINE: Final = 16
"""Bytes that a line counts besides its text: empty ones would be kept without end."""


class Event(msgspec.Struct, frozen=True):
    """One event. ``id`` is the last one that was given, ``retry`` milliseconds."""

    name: str
    data: str
    id: str
    retry: int | None


class EventStream:
    """Iterates over a response's events; leaving the ``async with`` closes the response.

    The library's own reader leaves its generators unfinished where its reader stops, which trio complains of.
    """

    def __init__(self, response: httpx2.Response, largest: int) -> None:
        """Read nothing yet.

        :param largest: bytes of one event
        """
        self._response = response
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        self._pieces = aiter(response.stream)
        self._largest = largest
        self._line_so_far: list[bytes] = []
        self._line_size = 0
        self._begun = False
        self._after_return = False
        self._ready: deque[Event] = deque()
        self._name = ""
        self._data: list[bytes] = []
        self._size = 0
        self._id = ""
        self._retry: int | None = None

    async def __aenter__(self) -> EventStream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._response.aclose()
        if isinstance(self._pieces, AsyncGenerator):
            await self._pieces.aclose()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        """Return the next event. :raises ResponseTooLarge: if it is larger than allowed"""
        while not self._ready:
            self._feed(await anext(self._pieces))
        return self._ready.popleft()

    def _feed(self, piece: bytes) -> None:
        if not self._begun:
            self._begun = True
            piece = piece.removeprefix(_BOM)
        if self._after_return and piece:
            # The other half of a line end.
            piece = piece.removeprefix(b"\n")
            self._after_return = False
        self._after_return = self._after_return or piece.endswith(b"\r")
        first, *others = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._hold(first)
        for each in others:
            # Joined only here: a line that comes in many pieces is not copied for each of them.
            line, self._line_so_far, self._line_size = b"".join(self._line_so_far), [], 0
            self._line(line)
            self._hold(each)

    def _hold(self, part: bytes) -> None:
        if part:
            self._line_so_far.append(part)
            self._line_size += len(part)
            self._limit(self._line_size)

    def _line(self, line: bytes) -> None:
        if not line:
            self._end()
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"data":
                self._data.append(value)
                self._size += len(value) + _LINE
                self._limit(0)
            case b"event":
                self._name = value.decode(errors="replace")
            case b"id" if b"\x00" not in value:
                self._id = value.decode(errors="replace")
            case b"retry" if value.isdigit() and len(value) < 10:
                self._retry = int(value)

    def _limit(self, more: int) -> None:
        if self._size + more > self._largest:
            raise ResponseTooLarge(f"an event is larger than {self._largest} bytes")

    def _end(self) -> None:
        data = b"\n".join(self._data).decode(errors="replace")
        self._ready.append(Event(self._name or "message", data, self._id, self._retry))
        self._name, self._data, self._size, self._retry = "", [], 0, None
