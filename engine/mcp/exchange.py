"""What becomes of one request on the wire: the status of its answer, what went wrong, and the way to give it up.

The library that speaks MCP over HTTP keeps none of that: it turns whatever goes wrong into an error without a status,
or ends the whole session. So its HTTP client is watched.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import anyio
import httpx2

__all__ = ("Exchange", "WatchedClient", "current_exchange", "in_exchange")

_NO_ANSWER: Final = 599
_CURRENT: Final[ContextVar[Exchange | None]] = ContextVar("calljournal_mcp_exchange", default=None)


class Exchange:
    """One request and its answer.

    :ivar number: the request's JSON-RPC id
    :ivar status: of the HTTP response, the last one where there were several
    :ivar session_id: of the session in which it was sent, as the server calls it
    :ivar error: why there was no response, or no whole one
    :ivar sent: it may have reached the server
    :ivar result: the answer's result as it came, not checked
    """

    def __init__(self, limit: float | None = None) -> None:
        """Begin.

        :param limit: seconds for each HTTP response to come; None: the policy's
        """
        self.limit = limit
        self.number: int | str | None = None
        self.status: int | None = None
        self.session_id: str | None = None
        self.error: Exception | None = None
        self.sent = False
        self.result: dict[str, Any] | None = None
        self._given_up = False
        self._scopes: set[anyio.CancelScope] = set()

    def __repr__(self) -> str:
        return f"<Exchange {self.number} status={self.status}>"

    def give_up(self) -> None:
        """Close its connections: nobody waits for the answer any more."""
        self._given_up = True
        for scope in tuple(self._scopes):
            scope.cancel()

    @contextmanager
    def held(self, limit: float | None = None) -> Iterator[anyio.CancelScope]:
        """Hold a piece of work that ends when this is given up, or after ``limit`` seconds."""
        scope = anyio.move_on_after(limit)
        self._scopes.add(scope)
        if self._given_up:
            scope.cancel()
        try:
            with scope:
                yield scope
        finally:
            self._scopes.discard(scope)


def current_exchange() -> Exchange | None:
    """Return the exchange that the running code is part of."""
    return _CURRENT.get()


@contextmanager
def in_exchange(exchange: Exchange | None) -> Iterator[Exchange | None]:
    """Make the code within, and the tasks that it starts, part of an exchange."""
    token = _CURRENT.set(exchange)
    try:
        yield exchange
    finally:
        _CURRENT.reset(token)


class WatchedClient(httpx2.AsyncClient):
    """Notes what becomes of each request, and never raises: where no response came, it gives one with status 599."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request, its authentication included."""
        exchange = current_exchange() or Exchange()
        exchange.session_id = request.headers.get("mcp-session-id")
        exchange.error = None
        exchange.sent = True
        with exchange.held(exchange.limit) as scope:
            try:
                response = await super().send(request, **options)
            except Exception as error:  # whatever sending or authenticating raises: the call that waits is told
                exchange.error = error
                return _none(request)
            exchange.status = response.status_code
            if isinstance(response.stream, httpx2.AsyncByteStream):
                response.stream = _Watched(response.stream, exchange)
            return response
        exchange.error = TimeoutError(f"nothing came within {exchange.limit:g} s") if exchange.limit else None
        assert scope.cancel_called
        return _none(request)


def _none(request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(_NO_ANSWER, request=request)


class _Watched(httpx2.AsyncByteStream):
    """A response's body; what goes wrong with it ends the call and not the session."""

    def __init__(self, stream: httpx2.AsyncByteStream, exchange: Exchange) -> None:
        self._stream = stream
        self._pieces = aiter(stream)
        self._exchange = exchange

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        with self._exchange.held():
            try:
                return await anext(self._pieces)
            except StopAsyncIteration:
                raise
            except Exception as error:
                self._exchange.error = error
                raise httpx2.StreamError(str(error)) from None
        raise StopAsyncIteration

    async def aclose(self) -> None:
        await self._stream.aclose()
        # The library's generator, left unfinished by whoever stops reading, would be ended by nobody on trio.
        if isinstance(self._pieces, AsyncGenerator):
            await self._pieces.aclose()
