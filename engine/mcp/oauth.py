"""OAuth for calls: a stored token goes with each request, is renewed when it ends, and nobody is ever asked.

Consent is given beforehand, by ``calljournal tools authorize`` (see ``oauth_flow``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final

import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth

from engine.contract import Scope
from engine.mcp.errors import McpError
from engine.mcp.oauth_errors import AuthorizationFailed, AuthorizationUnavailable, AuthorizedAnew, shown
from engine.mcp.oauth_grant import canonical_url
from engine.mcp.refreshing import Grants, Place
from engine.mcp.token_store import Kept
from events.errors import Refused, Unavailable

__all__ = ("StoredAuth", "oauth_auth", "oauth_for", "place_of")

_LATEST: Final = 8
"""Tokens that are remembered as sent: a slow answer may speak of one that has been renewed since."""


class StoredAuth(httpx2.Auth):
    """Sends the stored token of a place to its server, and to no other origin (BEHAVIOUR 136, MCP-10).

    A 401 renews it, or takes what another worker has stored since, and sends the request once more: the server has
    turned it down unread. A second 401 is an error. It keeps to the consent that it began with: a session that was
    opened as one person never goes on as another.

    :ivar place: whose token, for which server
    """

    def __init__(self, grants: Grants, place: Place) -> None:
        self._grants = grants
        self.place = place
        self._known: Kept | None = None
        self._sent = deque[str](maxlen=_LATEST)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The tokens that were sent, for whoever takes them out of what comes back."""
        return tuple(self._sent)

    def __repr__(self) -> str:
        return f"<StoredAuth {shown(self.place.url)}>"

    async def ready(self) -> None:
        """Make sure, before a session is begun, that there is a token to send.

        :raises AuthorizationNeeded: if a person has to agree first
        :raises AuthorizationUnavailable: if it cannot be read or renewed now; trying again later may help
        :raises AuthorizationFailed: if it cannot be opened, or its renewal was refused
        """
        await self._token()

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Authenticate a request.

        :raises AuthorizedAnew: if there has been another consent since the first request
        :raises McpError: as :meth:`ready`
        """
        if not _same_origin(request.url, httpx2.URL(self.place.url)):
            yield request
            return
        token = await self._token()
        response = yield _bearing(request, token)
        if response.status_code == 401:
            token = await self._token(rejected=token)
            response = yield _bearing(request, token)
            if response.status_code == 401:
                raise self.place.needed("turns down a token that has just been renewed")
        if response.status_code == 403 and extract_field_from_www_auth(response, "error") == "insufficient_scope":
            raise self.place.needed(f"asks for {_wanted(response)}; add that to the row's oauth_scopes")

    async def _token(self, rejected: str | None = None) -> str:
        try:
            kept = await self._grants.usable(self.place, rejected=rejected, known=self._known)
        except McpError:
            raise
        except Unavailable as error:
            raise AuthorizationUnavailable(f"the authorization for {shown(self.place.url)}: {error}") from error
        except Refused as error:
            raise AuthorizationFailed(f"the authorization for {shown(self.place.url)}: {error}") from error
        if self._known is not None and self._known.grant.consent != kept.grant.consent:
            raise AuthorizedAnew(f"{shown(self.place.url)} was authorized anew; call it again")
        self._known = kept
        token = kept.grant.access_token
        if token not in self._sent:
            self._sent.append(token)
        return token


def oauth_auth(server_url: str, scope: Scope) -> StoredAuth:
    """Return what authenticates the requests to a server with the token that is stored for it.

    :raises Refused: if the URL is none, or there is no journal to keep tokens in
    """
    grants, place = scope.services.shared(Grants), place_of(server_url, scope)
    grants.at(place)
    return StoredAuth(grants, place)


async def oauth_for(
    config: Mapping[str, Any],
    scope: Scope,
    interactive: bool = False,  # noqa: ARG001
) -> StoredAuth:
    """Return what authenticates the requests of a row, once there is a token to send.

    :param interactive: whether a person is there; it makes no difference, for consent is given on the command line
    :raises AuthorizationNeeded: if a person has to agree first
    :raises McpError: if the token cannot be read, opened or renewed
    :raises Refused: if the row's URL is none, or there is no journal to keep tokens in
    """
    auth = oauth_auth(str(config.get("server_url") or ""), scope)
    await auth.ready()
    return auth


def place_of(server_url: str, scope: Scope) -> Place:
    """Return whose authorization a row uses: its owner's, of a row without one whoever calls (BEHAVIOUR 130).

    :raises Refused: if the URL is none
    """
    owner = scope.user_id if scope.owner is None else scope.owner
    return Place(owner, canonical_url(server_url), scope.tool_id)


def _bearing(request: httpx2.Request, token: str) -> httpx2.Request:
    request.headers["Authorization"] = f"Bearer {token}"
    return request


def _same_origin(one: httpx2.URL, other: httpx2.URL) -> bool:
    return (one.scheme, one.raw_host, one.port) == (other.scheme, other.raw_host, other.port)


def _wanted(response: httpx2.Response) -> str:
    scope = extract_field_from_www_auth(response, "scope")
    return f"the scope {shown(scope)!r}" if scope else "more than was granted"
