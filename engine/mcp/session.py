"""One session with one MCP server, owned by one task from its opening to its end; calls of any task may use it."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import httpx2
import mcp_types as types
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import HEADER_MISMATCH

from engine.mcp.channel import Channel, NoAnswer
from engine.mcp.definitions import Definition
from engine.mcp.exchange import Exchange, in_exchange
from engine.mcp.listing import list_all
from engine.mcp.server import Server
from engine.mcp.sse import Sse
from engine.mcp.streamable_http import StreamableHttp
from engine.mcp.transport import Transport
from engine.net.transport2 import client_factory
from engine.services import Services

__all__ = ("Annotate", "Authenticate", "NotOpened", "Session")

_log = logging.getLogger("calljournal.mcp")
_FAREWELL: Final = 2.0
"""Seconds for telling the server that its session is over."""

_FRESH: Final = 60.0
"""Seconds after which a list of tools is asked for again, for not every server says when it has changed."""

_DENIED: Final = (401, 403)

Authenticate = Callable[[], Awaitable[httpx2.Auth | None]]
"""Returns what authenticates the session's requests."""


Annotate = Callable[[str, Exchange], None]
"""Takes the protocol's version and what became of one request."""


class NotOpened(Exception):
    """There is no session; its cause tells why."""


class Session:
    """A session; :meth:`run` is its owner's, everything else anybody's.

    :ivar version: the protocol that was agreed on
    """

    def __init__(self, server: Server, authenticate: Authenticate, services: Services, idle: float) -> None:
        self.server = server
        self.version = ""
        self._authenticate = authenticate
        self._services = services
        self._idle = idle
        self._opened = anyio.Event()
        self._gone = anyio.Event()
        self._closing = anyio.Event()
        self._failure: Exception | None = None
        self._mcp: ClientSession | None = None
        self._channel: Channel | None = None
        self._auth: httpx2.Auth | None = None
        self._retired = False
        self._users = 0
        self._last_used = 0.0
        self._listing = anyio.Lock()
        self._known: dict[str, Definition] = {}
        self._known_at: float | None = None

    def __repr__(self) -> str:
        state = "gone" if self._gone.is_set() else f"open, {self._users} calls" if self._opened.is_set() else "opening"
        return f"<Session {self.server!r} {state}>"

    @property
    def usable(self) -> bool:
        """Whether a call may still begin in it."""
        lost = self._channel is not None and self._channel.closed
        return not (self._retired or self._closing.is_set() or self._gone.is_set() or lost)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What authenticates its requests and is no credential of the row: tokens."""
        return tuple(getattr(self._auth, "secrets", ()))

    def close(self) -> None:
        """End the session; calls that run in it are cut off."""
        self._closing.set()

    def retire(self) -> None:
        """Let no more calls begin, and end the session when the last one has ended."""
        self._retired = True
        self._rest()

    def _rest(self) -> None:
        if self._retired and not self._users:
            self._closing.set()

    async def ended(self) -> None:
        """Wait until nothing of it is left."""
        await self._gone.wait()

    @property
    def idle_since(self) -> float:
        """When it was used last, by the event loop's clock; infinite while it is in use."""
        return float("inf") if self._users or not self._opened.is_set() else self._last_used

    async def run(self) -> None:
        """Open the session, keep it until nobody has used it for its idle time or it is closed, and end it."""
        with in_exchange(None):
            try:
                await self._live()
            except Exception as error:  # whatever ends it: who waits for it is told, and the engine lives on
                self._failure = error
                _log.info("the session with %s ended: %s", self.server.address, type(error).__name__)
            finally:
                self._closing.set()
                self._opened.set()
                self._gone.set()

    async def _live(self) -> None:
        auth = self._auth = await self._authenticate()
        with anyio.CancelScope() as whole:
            async with self._client(auth) as client:
                transport = self._transport(client)
                channel = self._channel = Channel(transport, self._list_changed)
                async with ClientSession(dispatcher=channel, **self._callbacks()) as session:
                    await self._negotiate(session)
                    self._mcp = session
                    self._last_used = anyio.current_time()
                    self._opened.set()
                    await self._until_unused(channel)
                    self._closing.set()
                # Nobody waits any longer for what the server does with the farewell.
                whole.deadline = anyio.current_time() + _FAREWELL
                await transport.farewell()

    def _client(self, auth: httpx2.Auth | None) -> httpx2.AsyncClient:
        services = self._services
        make = client_factory(services.net, services.resolver, services.tls)
        timeout = httpx2.Timeout(30.0, connect=services.net.connect, read=None)
        return make(headers=dict(self.server.headers), timeout=timeout, auth=auth)

    def _transport(self, client: httpx2.AsyncClient) -> Transport:
        largest = self._services.net.largest
        kind = Sse if self.server.transport == "sse" else StreamableHttp
        return kind(self.server.url, client, largest)

    def _callbacks(self) -> dict[str, Any]:
        return {
            "elicitation_callback": _declined,
            "list_roots_callback": _no_roots,
            "client_info": types.Implementation(name="calljournal", version="0.1"),
        }

    def _list_changed(self) -> None:
        self._known_at = None

    async def _negotiate(self, session: ClientSession) -> None:
        if self.server.transport == "sse" or not await self._discovered(session):
            await session.initialize()
        self.version = session.protocol_version or ""

    async def _discovered(self, session: ClientSession) -> bool:
        """Agree on the newest protocol; False: the server does not know of it."""
        exchange = Exchange()
        try:
            with in_exchange(exchange):
                await session.discover()
        except NoAnswer as error:
            if error.exchange.error is not None or error.exchange.status in _DENIED:
                raise
            return False
        except (MCPError, RuntimeError, ValueError):
            return False
        return True

    async def _until_unused(self, channel: Channel) -> None:
        async with anyio.create_task_group() as waiting:
            for event in (self._closing, channel.ended):
                waiting.start_soon(_cancel_after, event, waiting.cancel_scope)
            while (left := self._left()) > 0:  # noqa: ASYNC110 - what is left changes with every use
                await anyio.sleep(left)
            waiting.cancel_scope.cancel()

    def _left(self) -> float:
        """Return the seconds until it has been idle for long enough, if nobody uses it meanwhile."""
        return self._idle if self._users else self._last_used + self._idle - anyio.current_time()

    @asynccontextmanager
    async def used(self) -> AsyncGenerator[ClientSession, None]:
        """Use the session once it is open; meanwhile it does not end for want of use.

        :raises NotOpened: if it cannot be opened
        """
        self._users += 1
        try:
            await self._opened.wait()
            if self._mcp is None:
                raise NotOpened from self._failure
            yield self._mcp
        finally:
            self._users -= 1
            self._last_used = anyio.current_time()
            self._rest()

    async def result_of(
        self, request: types.Request[Any, Any], annotate: Annotate, progress: Any = None
    ) -> dict[str, Any]:
        """Send a request and return the result as it came.

        :param annotate: told of each request, once it has ended
        :raises NoAnswer: if there is none, or it is an error
        """
        async with self.used() as session:
            try:
                return await self._sent(session, request, annotate, progress)
            except NoAnswer as error:
                if error.code != HEADER_MISMATCH:
                    raise
            # The server wants headers that only its list of tools tells; it has not run anything.
            self._known_at = None
            await self.definitions()
            return await self._sent(session, request, annotate, progress)

    async def _sent(
        self, session: ClientSession, request: types.Request[Any, Any], annotate: Annotate, progress: Any
    ) -> dict[str, Any]:
        exchange = Exchange()
        try:
            with in_exchange(exchange):
                await session.send_request(request, types.EmptyResult, progress_callback=progress)
        except ValueError:
            # Part of it is not as it should be: the rest is used all the same.
            if exchange.result is None:
                raise
        finally:
            annotate(self.version, exchange)
        return exchange.result or {}

    async def capabilities(self) -> frozenset[str]:
        """Return what the server says that it has besides tools. :raises NotOpened: if it cannot be opened"""
        async with self.used() as session:
            stated = session.server_capabilities
            has = {} if stated is None else {"resources": stated.resources, "prompts": stated.prompts}
            return frozenset([name for name, each in has.items() if each is not None])

    async def definitions(self) -> dict[str, Definition]:
        """Return the server's tools by name, at most a minute old, and anew where it said that they have changed.

        :raises NoAnswer: if it does not list them
        """
        async with self.used() as session, self._listing:
            known_at = self._known_at
            if known_at is None or anyio.current_time() > known_at + _FRESH:
                self._known_at = anyio.current_time()
                try:
                    self._known = await list_all(lambda cursor: _page(session, cursor), self.server.address)
                except BaseException:
                    self._known_at = None
                    raise
            return self._known


async def _page(session: ClientSession, cursor: str | None) -> Any:
    exchange = Exchange()
    try:
        with in_exchange(exchange):
            await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
    except ValueError:
        # One entry is not as it should be: the others are used all the same.
        if exchange.result is None:
            raise
    return exchange.result


async def _cancel_after(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def _declined(_: ClientRequestContext, __: types.ElicitRequestParams) -> types.ElicitResult:
    """Answer a server that asks while a call runs: nobody can be waited for then."""
    return types.ElicitResult(action="decline")


async def _no_roots(_: ClientRequestContext) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[])
