"""The way out: every request of every tool goes through here."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import httpx

from engine.net.body import Body
from engine.net.errors import BadResponse, DeadlineExceeded, NetError, TooManyRedirects, Unreachable
from engine.net.outgoing import HeadersLike, Outgoing, is_redirect
from engine.net.policy import NetPolicy
from engine.net.reply import Answer, Reply
from engine.net.resolver import Resolver
from engine.net.transport import PinnedTransport
from engine.net.wire import Wire
from engine.services import Services

__all__ = ("SafeClient", "safe_client")

_ERROR_BODY: Final = 64 * 1024
_BODILESS: Final = (204, 304)


class SafeClient:
    """Sends requests to where the policy lets them, and takes in no more than it allows. One per event loop.

    Connections stay warm between requests. Nothing is kept of one request for the next: no cookies, no credentials.
    The environment (proxies, netrc, certificates) plays no part.
    """

    def __init__(self, policy: NetPolicy, resolver: Resolver | None = None, tls: ssl.SSLContext | None = None) -> None:
        """Open nothing yet.

        :param resolver: None: the system's
        :param tls: whose certificates are trusted; None: the public authorities'
        """
        self._policy = policy
        self._transport = PinnedTransport(policy, resolver, tls)
        self._timeouts = {"connect": policy.connect, "read": None, "write": None, "pool": None}

    def __repr__(self) -> str:
        return f"<SafeClient {self._transport!r}>"

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: HeadersLike = (),
        content: bytes | None = None,
        follow: bool = False,
        largest: int | None = None,
        deadline: float | None = None,
        secret_headers: frozenset[str] = frozenset(),
    ) -> Reply:
        """Send a request and read the response. The parameters and errors are those of :meth:`stream`."""
        async with self.stream(
            method,
            url,
            headers=headers,
            content=content,
            follow=follow,
            largest=largest,
            deadline=deadline,
            secret_headers=secret_headers,
        ) as answer:
            return await answer.read()

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        headers: HeadersLike = (),
        content: bytes | None = None,
        follow: bool = False,
        largest: int | None = None,
        deadline: float | None = None,
        secret_headers: frozenset[str] = frozenset(),
    ) -> AsyncIterator[Answer]:
        """Send a request and give out the response, whose body is then read piece by piece.

        A status of error is no error; 64 KiB of its body are read, the rest, or what is broken in it, is left.

        :param headers: those that frame a message (Host, Content-Length and the like) are the client's own
        :param follow: whether redirects are followed, each checked as the first URL was
        :param largest: bytes of the decoded body, within the policy's limit; None: that
        :param deadline: seconds until the block is left, within the policy's limit; None: that
        :param secret_headers: names of further headers that are not sent on to another origin
        :raises UnsafeUserUrlError: if the URL or a redirect's target may not be opened
        :raises Unreachable: if there is no such host, or no connection to it
        :raises TooManyRedirects: if there are more than the policy follows
        :raises ResponseTooLarge: in reading, if the body is larger; before anything is read if it says so
        :raises BadResponse: if no whole response comes
        :raises DeadlineExceeded: if it takes longer, the work done in the block included
        :raises NetError: if the request itself is no HTTP
        """
        first = Outgoing.of(method, url, headers, content, self._policy.user_agent)
        seconds = min(self._policy.deadline, self._policy.deadline if deadline is None else deadline)
        at_most = min(self._policy.largest, self._policy.largest if largest is None else largest)
        with anyio.move_on_after(seconds) as scope:
            response, last = await self._arrived(first, secret_headers if follow else None)
            try:
                yield _answered(response, last, at_most)
            finally:
                await response.aclose()
        if scope.cancelled_caught:
            raise DeadlineExceeded(f"it took longer than {seconds:g} s")

    async def _arrived(
        self, request: Outgoing, secret_headers: frozenset[str] | None
    ) -> tuple[httpx.Response, Outgoing]:
        """Return the response that is no redirect, and what it responds to.

        :param secret_headers: None: a redirect is not followed either
        """
        while True:
            response = await self._sent(request)
            if secret_headers is None or not is_redirect(response.status_code):
                return response, request
            location = response.headers.get("location")
            await _let_go(response)
            if not location:
                raise BadResponse("it responded with a redirect but no target location")
            if request.hops == self._policy.redirects:
                raise TooManyRedirects(f"it redirects more than {self._policy.redirects} times")
            request = request.redirected(response.status_code, location, secret_headers)

    async def _sent(self, request: Outgoing) -> httpx.Response:
        try:
            built = httpx.Request(
                request.method,
                request.url,
                headers=httpx.Headers(request.headers, encoding="latin-1"),
                content=request.content,
                extensions={"timeout": self._timeouts, "redirected": request.hops > 0},
            )
            return await self._transport.handle_async_request(built)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            where = f" to {request.url.host}" if not request.hops else " to where it redirects"
            raise Unreachable(f"no connection{where}: {error}") from None
        except (httpx.LocalProtocolError, UnicodeEncodeError):
            raise NetError("the request holds characters that HTTP does not allow") from None
        except httpx.TransportError as error:
            raise _broken_off(error) from None

    async def aclose(self) -> None:
        """Close every connection."""
        await self._transport.aclose()


def _answered(response: httpx.Response, request: Outgoing, largest: int) -> Answer:
    is_error = response.status_code >= 400
    has_body = request.method != "HEAD" and response.status_code not in _BODILESS
    body = Body(
        _pieces(response),
        response.headers.get("content-encoding", ""),
        min(largest, _ERROR_BODY) if is_error else largest,
        declared=response.headers.get("content-length", "") if has_body else "",
        leave_rest=is_error,
    )
    return Answer(str(request.url), response.status_code, tuple(response.headers.multi_items()), body, request.hops)


def _pieces(response: httpx.Response) -> Wire:
    return Wire(response.stream, (httpx.TransportError,), _broken_off)


def _broken_off(error: Exception) -> BadResponse:
    return BadResponse(f"the response broke off: {error}")


async def _let_go(response: httpx.Response) -> None:
    """Part with a response; where its body is empty, its connection stays warm."""
    try:
        if response.headers.get("content-length") == "0":
            async for _ in _pieces(response):
                pass
    finally:
        await response.aclose()


def safe_client(services: Services) -> SafeClient:
    """Return a client of an engine's tools; ``services.shared(safe_client)`` is the engine's one."""
    return SafeClient(services.net, services.resolver, services.tls)
