"""A response's body as it is on the wire; the reading may be broken off at any point."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio

__all__ = ("Wire",)


class Wire:
    """Iterates over what an HTTP library's stream has, with its errors turned into others.

    Closing it ends the library's generators on every event loop, wherever they stand.
    """

    def __init__(
        self,
        stream: Any,
        failures: tuple[type[Exception], ...],
        mapped: Callable[[Exception], Exception],
        settle: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Read nothing yet.

        :param stream: has ``aclose``, which closes the connection if the body has not been read to its end
        :param failures: the library's errors
        :param mapped: turns one of them into what is raised
        :param settle: called once the stream has been closed, or could not be
        """
        assert isinstance(stream, AsyncIterable)
        self._stream = stream
        self._pieces = aiter(stream)
        self._failures = failures
        self._mapped = mapped
        self._settle = settle
        self._is_halted = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        self._is_halted = False
        try:
            piece: bytes = await anext(self._pieces)
        except self._failures as error:
            raise self._mapped(error) from None
        self._is_halted = True
        return piece

    async def aclose(self) -> None:
        """Close the stream."""
        try:
            with anyio.CancelScope(shield=True):
                await self._stream.aclose()  # type: ignore[attr-defined]
                await self._end()
        finally:
            if self._settle is not None:
                await self._settle()

    async def _end(self) -> None:
        if self._is_halted:
            # The library's generators, one inside another, are left unfinished by whoever stops reading; asked again
            # after the connection is closed, they end.
            with suppress(*self._failures):
                async for _ in self._pieces:
                    pass
