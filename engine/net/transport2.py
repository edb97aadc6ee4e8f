"""The same policy for the clients of MCP, which speak through httpx2.

They read a response whole, so its limits are kept here: the body is unpacked and counted before they see it. A stream
of events may go on for as long as its reader likes; MCP's client limits each event.
"""

from __future__ import annotations

import ssl
import sys
from collections.abc import AsyncIterator
from math import inf
from typing import Any, Final, Protocol

import anyio
import httpcore2
import httpx2

from engine.net.body import ACCEPTED, Body
from engine.net.connections import Connections
from engine.net.errors import BadResponse, DeadlineExceeded, ResponseTooLarge
from engine.net.failures import said_of
from engine.net.field_lines import checked_fields
from engine.net.logged import keep_secrets_out
from engine.net.policy import NetPolicy
from engine.net.pool import IDLE
from engine.net.resolver import Resolver
from engine.net.target import Target
from engine.net.wire import Wire

__all__ = ("ClientFactory", "PinnedTransport2", "client_factory")

_FAILURES: Final = (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError)
_TIMEOUT: Final = httpx2.Timeout(30.0, read=300.0)
_REPEATABLE: Final = ("GET", "HEAD")


class ClientFactory(Protocol):
    """What FastMCP and mcp take as ``httpx_client_factory``."""

    def __call__(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
        **others: Any,
    ) -> httpx2.AsyncClient:
        """Return a client; what else is asked for (``follow_redirects``) plays no part."""


def client_factory(
    policy: NetPolicy, resolver: Resolver | None = None, tls: ssl.SSLContext | None = None
) -> ClientFactory:
    """Return a factory of clients that keep to the policy: no redirects, no proxies, no netrc.

    MCP's own clients follow redirects within one origin themselves; each of them is checked as every request is.
    """

    def make(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
        **_: Any,
    ) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            transport=PinnedTransport2(policy, resolver, tls),
            headers={"User-Agent": policy.user_agent, **(headers or {})},
            timeout=timeout or _TIMEOUT,
            auth=auth,
            follow_redirects=False,
            trust_env=False,
        )

    return make


class _TooLarge(ResponseTooLarge, httpx2.StreamError):
    """As MCP's client expects it: the call fails, the session lives on."""


class _Broken(BadResponse, httpx2.StreamError):
    """Likewise."""


class _Late(DeadlineExceeded, httpx2.StreamError):
    """Likewise."""


class PinnedTransport2(httpx2.AsyncBaseTransport):
    """Sends a request, after its host was judged for it; connections stay warm for five seconds.

    The Host header and the TLS name are the URL's. No proxy, no redirect, no HTTP/2. A body comes unpacked, no larger
    than the policy allows and no later; an event stream is limited in neither.
    """

    def __init__(self, policy: NetPolicy, resolver: Resolver | None = None, tls: ssl.SSLContext | None = None) -> None:
        """Open nothing yet.

        :param resolver: None: the system's
        :param tls: whose certificates are trusted; None: the public authorities'
        """
        self._policy = policy
        self._connections = Connections(_Httpcore2(), policy, resolver, tls)
        # The client above writes each URL to its log, and a server's may carry a key.
        keep_secrets_out("httpx2", "httpcore2.http11")

    def __repr__(self) -> str:
        return f"<PinnedTransport2 {self._connections!r}>"

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request.

        :raises UnsafeUserUrlError: if the policy forbids it
        :raises Unreachable: if there is no such host
        :raises NetError: if a header is none that HTTP allows
        :raises DeadlineExceeded: if no response begins within the policy's deadline
        :raises httpx2.TransportError: if no response comes; the text holds nothing of the request or the response
        """
        ends_at = anyio.current_time() + self._policy.deadline
        with anyio.move_on_after(self._policy.deadline):
            return await self._arrived(request, ends_at)
        raise DeadlineExceeded(_late(self._policy))

    async def _arrived(self, request: httpx2.Request, ends_at: float) -> httpx2.Response:
        url = request.url
        target = Target.of(url.scheme, url.raw_host, url.port, url.userinfo, self._policy)
        pinned = _pinned(request, target)
        try:
            loan, response = await self._connections.exchange(
                target,
                lambda connection: connection.handle_async_request(pinned),
                repeatable=request.method in _REPEATABLE,
            )
        except _FAILURES as error:
            raise _mapped(error) from None
        return self._limited(response, Wire(response.stream, _FAILURES, _mapped, loan.settle), ends_at)

    def _limited(self, response: httpcore2.Response, wire: Wire, ends_at: float) -> httpx2.Response:
        headers = httpx2.Headers(response.headers)
        encoding, declared = headers.pop("content-encoding", ""), headers.get("content-length", "")
        if encoding:
            headers.pop("content-length", None)
        is_stream = headers.get("content-type", "").lower().startswith("text/event-stream")
        body = Body(wire, encoding, sys.maxsize if is_stream else self._policy.largest, declared=declared)
        stream = _Limited(wire, body, inf if is_stream else ends_at, _late(self._policy))
        return httpx2.Response(response.status, headers=headers, stream=stream)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._connections.aclose()


class _Httpcore2:
    """httpcore2, as :class:`engine.net.connections.Library`."""

    failures = _FAILURES
    unanswered = (httpcore2.ConnectError, httpcore2.ConnectTimeout)

    def __init__(self) -> None:
        self._network = httpcore2.AnyIOBackend()

    async def connect(self, address: str, port: int, seconds: float) -> httpcore2.AsyncNetworkStream:
        return await self._network.connect_tcp(address, port, seconds)

    async def secure(
        self, stream: httpcore2.AsyncNetworkStream, tls: ssl.SSLContext, name: str, seconds: float
    ) -> httpcore2.AsyncNetworkStream:
        return await stream.start_tls(tls, name, seconds)

    def speak(self, target: Target, stream: httpcore2.AsyncNetworkStream) -> httpcore2.AsyncHTTP11Connection:
        origin = httpcore2.Origin(target.scheme.encode(), target.host.encode(), target.port)
        return httpcore2.AsyncHTTP11Connection(origin, stream, keepalive_expiry=IDLE)


class _Limited(httpx2.AsyncByteStream):
    """A response's body, unpacked, to its limits."""

    def __init__(self, wire: Wire, body: Body, ends_at: float, late: str) -> None:
        self._wire = wire
        self._body = body
        self._ends_at = ends_at
        self._late = late

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            with anyio.CancelScope(deadline=self._ends_at):
                return await anext(self._body)
        except ResponseTooLarge as error:
            raise _TooLarge(str(error)) from None
        except BadResponse as error:
            raise _Broken(str(error)) from None
        raise _Late(self._late)

    async def aclose(self) -> None:
        await self._wire.aclose()


def _pinned(request: httpx2.Request, target: Target) -> httpcore2.Request:
    scheme, host = target.scheme.encode(), target.host.encode()
    headers = checked_fields(request.url.netloc, request.headers.raw, b"accept-encoding")
    assert isinstance(request.stream, httpx2.AsyncByteStream)
    return httpcore2.Request(
        request.method,
        httpcore2.URL(scheme=scheme, host=host, port=target.port, target=request.url.raw_path),
        headers=[*headers, (b"Accept-Encoding", ACCEPTED.encode())],
        content=request.stream,
        extensions=request.extensions,
    )


def _mapped(error: Exception) -> httpx2.TransportError:
    kind = getattr(httpx2, type(error).__name__, httpx2.TransportError)
    return kind(said_of(error))


def _late(policy: NetPolicy) -> str:
    return f"it took longer than {policy.deadline:g} s"
