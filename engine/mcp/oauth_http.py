"""Requests to authorization servers: over the one policy, encrypted, small, and to their end in seconds."""

from __future__ import annotations

from typing import Final

import httpx2

from engine.mcp.oauth_errors import AuthorizationFailed, AuthorizationUnavailable, shown
from engine.net.client import SafeClient, safe_client
from engine.net.encryption import crosses_in_clear
from engine.net.errors import BadResponse, DeadlineExceeded, NetError, Unreachable
from engine.services import Services

__all__ = ("EXCHANGE", "OAuthHttp")

EXCHANGE: Final = 15.0
"""Seconds for one request and its response."""

_LARGEST: Final = 256 * 1024
_PASSING: Final = (Unreachable, BadResponse, DeadlineExceeded)


class OAuthHttp:
    """Sends the requests that mcp's provider makes. No redirect is followed."""

    def __init__(self, services: Services) -> None:
        self._client: SafeClient = services.shared(safe_client)
        self._services = services

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return its response with the body.

        :raises AuthorizationUnavailable: if none comes
        :raises Refused: if the policy forbids it, or it would cross the internet in clear
        """
        await self.check(request.url)
        try:
            reply = await self._client.request(
                request.method,
                str(request.url),
                headers=request.headers.multi_items(),
                content=request.content or None,
                largest=_LARGEST,
                deadline=EXCHANGE,
            )
        except _PASSING as error:
            raise _unavailable(request.url, error) from None
        return httpx2.Response(reply.status, content=reply.body, request=request)

    async def look(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return status and headers of its response; of the body, which may never end, nothing.

        :raises AuthorizationUnavailable: if none comes
        :raises Refused: as for :meth:`send`
        """
        await self.check(request.url)
        headers = request.headers.multi_items()
        try:
            async with self._client.stream(
                request.method, str(request.url), headers=headers, deadline=EXCHANGE
            ) as answer:
                named = [(name, value) for name, value in answer.headers if name.lower() == "www-authenticate"]
                return httpx2.Response(answer.status, headers=named, request=request)
        except _PASSING as error:
            raise _unavailable(request.url, error) from None

    async def check(self, url: httpx2.URL) -> None:
        """Refuse a URL that may not be opened, or that would be opened unencrypted although it is public.

        :raises UnsafeUserUrlError: if the policy forbids it
        :raises AuthorizationFailed: if it is not encrypted; the operator's own networks need not be
        """
        try:
            in_clear = await crosses_in_clear(self._services, str(url))
        except Unreachable as error:
            raise _unavailable(url, error) from None
        if in_clear:
            raise AuthorizationFailed(f"{shown(str(url))} is not encrypted: no token may go there; use https")


def _unavailable(url: httpx2.URL, error: NetError) -> AuthorizationUnavailable:
    return AuthorizationUnavailable(f"{url.host} cannot be reached for authorization ({error}); try again later")
