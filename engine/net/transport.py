"""An httpx transport that goes only where the policy lets it, and to the very addresses that were judged.

httpcore speaks HTTP over a connection; which connections there are, and where they lead, is ours.
"""

from __future__ import annotations

import ssl
from typing import Final

import httpcore
import httpx

from engine.net.connections import Connections
from engine.net.failures import said_of
from engine.net.field_lines import checked_fields
from engine.net.logged import keep_secrets_out
from engine.net.policy import NetPolicy
from engine.net.pool import IDLE
from engine.net.resolver import Resolver
from engine.net.target import Target
from engine.net.wire import Wire

__all__ = ("PinnedTransport",)

_FAILURES: Final = (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError)
_REPEATABLE: Final = ("GET", "HEAD")


class PinnedTransport(httpx.AsyncBaseTransport):
    """Sends a request, after its host was judged for it; connections stay warm for five seconds.

    The Host header and the TLS name are the URL's. No proxy, no redirect, no cookie, no HTTP/2. A response's body comes
    as it is on the wire.
    """

    def __init__(self, policy: NetPolicy, resolver: Resolver | None = None, tls: ssl.SSLContext | None = None) -> None:
        """Open nothing yet.

        :param resolver: None: the system's
        :param tls: whose certificates are trusted; None: the public authorities'
        """
        self._policy = policy
        self._connections = Connections(_Httpcore(), policy, resolver, tls)
        keep_secrets_out("httpcore.http11")

    def __repr__(self) -> str:
        return f"<PinnedTransport {self._connections!r}>"

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; a GET or HEAD again, over a new connection, if a warm one turns out to be dead.

        :raises UnsafeUserUrlError: if the policy forbids it
        :raises Unreachable: if there is no such host
        :raises NetError: if a header is none that HTTP allows
        :raises httpx.TransportError: if no response comes; the text holds nothing of the request or the response
        """
        url, redirected = request.url, bool(request.extensions.get("redirected"))
        target = Target.of(url.scheme, url.raw_host, url.port, url.userinfo, self._policy, redirected=redirected)
        pinned = _pinned(request, target)
        try:
            loan, response = await self._connections.exchange(
                target,
                lambda connection: connection.handle_async_request(pinned),
                repeatable=request.method in _REPEATABLE,
            )
        except _FAILURES as error:
            raise _mapped(error) from None
        body = _Wire(response.stream, _FAILURES, _mapped, loan.settle)
        return httpx.Response(response.status, headers=response.headers, stream=body)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._connections.aclose()


class _Httpcore:
    """httpcore, as :class:`engine.net.connections.Library`."""

    failures = _FAILURES
    unanswered = (httpcore.ConnectError, httpcore.ConnectTimeout)

    def __init__(self) -> None:
        self._network = httpcore.AnyIOBackend()

    async def connect(self, address: str, port: int, seconds: float) -> httpcore.AsyncNetworkStream:
        return await self._network.connect_tcp(address, port, seconds)

    async def secure(
        self, stream: httpcore.AsyncNetworkStream, tls: ssl.SSLContext, name: str, seconds: float
    ) -> httpcore.AsyncNetworkStream:
        return await stream.start_tls(tls, name, seconds)

    def speak(self, target: Target, stream: httpcore.AsyncNetworkStream) -> httpcore.AsyncHTTP11Connection:
        origin = httpcore.Origin(target.scheme.encode(), target.host.encode(), target.port)
        return httpcore.AsyncHTTP11Connection(origin, stream, keepalive_expiry=IDLE)


class _Wire(Wire, httpx.AsyncByteStream):
    """A response's body."""


def _pinned(request: httpx.Request, target: Target) -> httpcore.Request:
    scheme, host = target.scheme.encode(), target.host.encode()
    assert isinstance(request.stream, httpx.AsyncByteStream)
    return httpcore.Request(
        request.method,
        httpcore.URL(scheme=scheme, host=host, port=target.port, target=request.url.raw_path),
        headers=checked_fields(request.url.netloc, request.headers.raw),
        content=request.stream,
        extensions=request.extensions,
    )


def _mapped(error: Exception) -> httpx.TransportError:
    kind = getattr(httpx, type(error).__name__, httpx.TransportError)
    return kind(said_of(error))
