"""An httpx transport that goes only where the policy lets it, and to the very addresses that were judged.

What is public of httpcore does the talking; its network backend is the place where a connection is opened, and ours
opens none but to addresses that the policy has judged for this request.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Final, TypeAlias

import httpcore
import httpx

from engine.net.authorities import public_authorities
from engine.net.dialling import dial, judged, key_of
from engine.net.failures import said_of
from engine.net.field_lines import checked_fields
from engine.net.logged import keep_secrets_out
from engine.net.policy import NetPolicy
from engine.net.resolver import Resolver, system_resolver
from engine.net.target import Target
from engine.net.wire import Wire

__all__ = ("PinnedTransport",)

_IDLE: Final = 5.0
_WARM: Final = 20
_UNANSWERED: Final = (httpcore.ConnectError, httpcore.ConnectTimeout)
_FAILURES: Final = (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError)
_Option: TypeAlias = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


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
        self._resolver = resolver or system_resolver
        self._tls = tls
        keep_secrets_out("httpcore.http11")
        self._pools: dict[str, httpcore.AsyncConnectionPool] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request.

        :raises UnsafeUserUrlError: if the policy forbids it
        :raises Unreachable: if there is no such host
        :raises NetError: if a header is none that HTTP allows
        :raises httpx.TransportError: if no response comes; the text holds nothing of the request or the response
        """
        url, redirected = request.url, bool(request.extensions.get("redirected"))
        target = Target.of(url.scheme, url.raw_host, url.port, url.userinfo, self._policy, redirected=redirected)
        addresses = await target.addresses(self._policy, self._resolver)
        pinned = _pinned(request, target, key_of(target.host, addresses))
        try:
            response = await self._pool(target.scheme).handle_async_request(pinned)
        except _FAILURES as error:
            raise _mapped(error) from None
        return httpx.Response(
            response.status, headers=response.headers, stream=_Wire(response.stream, _FAILURES, _mapped)
        )

    def _pool(self, scheme: str) -> httpcore.AsyncConnectionPool:
        if scheme not in self._pools:
            self._pools[scheme] = httpcore.AsyncConnectionPool(
                # Plain http has nothing to verify.
                ssl_context=(self._tls or public_authorities()) if scheme == "https" else None,
                max_connections=self._policy.connections,
                max_keepalive_connections=_WARM,
                keepalive_expiry=_IDLE,
                network_backend=_Dialler(),
            )
        return self._pools[scheme]

    async def aclose(self) -> None:
        """Close every connection."""
        for pool in self._pools.values():
            await pool.aclose()


class _Dialler(httpcore.AsyncNetworkBackend):
    """Opens connections to judged addresses."""

    def __init__(self) -> None:
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[_Option] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        async def connect(address: str) -> httpcore.AsyncNetworkStream:
            return await self._network.connect_tcp(address, port, timeout, local_address, socket_options)

        return await dial(connect, judged(host), _UNANSWERED)


class _Wire(Wire, httpx.AsyncByteStream):
    """A response's body."""


def _pinned(request: httpx.Request, target: Target, key: bytes) -> httpcore.Request:
    url = httpcore.URL(scheme=target.scheme.encode(), host=key, port=target.port, target=request.url.raw_path)
    assert isinstance(request.stream, httpx.AsyncByteStream)
    return httpcore.Request(
        request.method,
        url,
        headers=checked_fields(request.url.netloc, request.headers.raw),
        content=request.stream,
        extensions={**request.extensions, "sni_hostname": target.host},
    )


def _mapped(error: Exception) -> httpx.TransportError:
    kind = getattr(httpx, type(error).__name__, httpx.TransportError)
    return kind(said_of(error))
