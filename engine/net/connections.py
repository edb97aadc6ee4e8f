"""From a URL to a connection: judged, dialled, secured, or still warm; the same for every HTTP library."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar

from engine.net.addresses import Address
from engine.net.authorities import public_authorities
from engine.net.dialling import Closeable, closed, dial
from engine.net.policy import NetPolicy
from engine.net.pool import Connection, Loan, Pool
from engine.net.resolver import Resolver, system_resolver
from engine.net.target import Target

__all__ = ("Connections", "Library")

S = TypeVar("S", bound=Closeable)
C = TypeVar("C", bound=Connection)
C_co = TypeVar("C_co", bound=Connection, covariant=True)
R = TypeVar("R")


class Library(Protocol[S, C_co]):
    """What is needed of an HTTP library: streams, and a connection that speaks HTTP over one."""

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """The errors of an exchange."""

    @property
    def unanswered(self) -> tuple[type[Exception], ...]:
        """Those of them that say that an address does not answer."""

    async def connect(self, address: str, port: int, seconds: float) -> S:
        """Open a stream to an address."""

    async def secure(self, stream: S, tls: ssl.SSLContext, name: str, seconds: float) -> S:
        """Begin TLS on it, with a server that shows a certificate for the name."""

    def speak(self, target: Target, stream: S) -> C_co:
        """Make a connection of it."""


class Connections(Generic[S, C]):
    """The connections of one client, all of them to addresses that were judged for the request at hand."""

    def __init__(
        self, library: Library[S, C], policy: NetPolicy, resolver: Resolver | None, tls: ssl.SSLContext | None
    ) -> None:
        """Open nothing yet.

        :param resolver: None: the system's
        :param tls: whose certificates are trusted; None: the public authorities'
        """
        self._library = library
        self._policy = policy
        self._resolver = resolver or system_resolver
        self._tls = tls
        self._pool = Pool[C](policy.connections)

    def __repr__(self) -> str:
        return repr(self._pool)

    async def exchange(
        self, target: Target, send: Callable[[C], Awaitable[R]], *, repeatable: bool
    ) -> tuple[Loan[C], R]:
        """Judge where a request leads, send it over a connection there, and return its response.

        :param send: sends it
        :param repeatable: whether it may be sent again, over a new connection, if a warm one turns out to be dead
        :returns: the response, and the connection, to be settled when the body was read or is not wanted
        :raises UnsafeUserUrlError: if the policy forbids it
        :raises Unreachable: if there is no such host
        """
        addresses = await target.addresses(self._policy, self._resolver)
        try:
            return await self._sent(target, addresses, send, fresh=False)
        except _Stale as stale:
            if not repeatable:
                raise stale.error from None
        return await self._sent(target, addresses, send, fresh=True)

    async def _sent(
        self, target: Target, addresses: Sequence[Address], send: Callable[[C], Awaitable[R]], *, fresh: bool
    ) -> tuple[Loan[C], R]:
        key = (target.scheme, target.host, target.port, addresses)
        loan = await self._pool.borrow(key, partial(self._connected, target, addresses), fresh=fresh)
        try:
            return loan, await send(loan.connection)
        except self._library.failures as error:
            await loan.settle()
            if loan.is_warm:
                raise _Stale(error) from error
            raise
        except BaseException:
            await loan.settle()
            raise

    async def _connected(self, target: Target, addresses: Sequence[Address]) -> C:
        library, seconds = self._library, self._policy.connect
        named = [str(each) for each in addresses]
        stream = await dial(lambda each: library.connect(each, target.port, seconds), named, library.unanswered)
        if target.scheme == "https":
            try:
                stream = await library.secure(stream, self._tls or public_authorities(), target.host, seconds)
            except BaseException:
                await closed(stream)
                raise
        return library.speak(target, stream)

    async def aclose(self) -> None:
        """Close what is open and unused."""
        await self._pool.aclose()


class _Stale(Exception):
    """A warm connection brought no response."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error
