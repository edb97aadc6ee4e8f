"""One renewal: the refresh token goes to the token endpoint, once, and what comes back is told apart."""

from __future__ import annotations

import time
from typing import Final

import httpx2
import msgspec
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from msgspec.structs import replace
from pydantic import ValidationError

from engine.mcp.oauth_errors import AuthorizationFailed, AuthorizationUnavailable, error_code
from engine.mcp.oauth_grant import Grant, stale_at
from engine.mcp.oauth_http import OAuthHttp

__all__ = ("renewed",)

_WITHDRAWN: Final = frozenset({"invalid_grant", "invalid_client", "unauthorized_client", "bad_refresh_token"})
"""Codes after which no renewal can succeed any more; the last is GitHub's own."""


async def renewed(http: OAuthHttp, url: str, grant: Grant) -> Grant:
    """Return what a grant becomes: renewed, or marked as refused where the authorization server withdrew it.

    What the response leaves out stays as it was (RFC 6749, 6).

    :raises AuthorizationUnavailable: if the server cannot answer now
    :raises AuthorizationFailed: if it refuses this renewal for a reason that is none of the grant's
    """
    response = await http.send(await _Renewal(url, grant).request())
    code = _error_of(response)
    if code in _WITHDRAWN:
        return replace(grant, refused=code)
    host, status = response.request.url.host, response.status_code
    if status == 429 or status >= 500:
        raise AuthorizationUnavailable(f"{host} cannot renew the authorization now (HTTP {status}); try again later")
    tokens = _tokens_of(response)
    if tokens is None:
        said = f"{code}, HTTP {status}" if code else f"HTTP {status}"
        raise AuthorizationFailed(f"{host} did not renew the authorization ({said}); it is kept")
    return replace(
        grant,
        access_token=tokens.access_token,
        refresh_token=tokens.refresh_token or grant.refresh_token,
        scope=tokens.scope or grant.scope,
        stale_at=stale_at(time.time(), tokens.expires_in),
    )


class _Renewal(OAuthClientProvider):
    """mcp's provider, for the request that it makes of a grant."""

    def __init__(self, url: str, grant: Grant) -> None:
        client = OAuthClientInformationFull.model_validate(grant.client_metadata)
        metadata = OAuthClientMetadata(redirect_uris=client.redirect_uris)
        super().__init__(url, metadata, _NoStorage())
        self.context.client_info = client
        self.context.current_tokens = OAuthToken(access_token=grant.access_token, refresh_token=grant.refresh_token)
        self.context.protocol_version = grant.protocol_version
        if grant.server_metadata is not None:
            self.context.oauth_metadata = OAuthMetadata.model_validate(grant.server_metadata)
        if grant.resource_metadata is not None:
            self.context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(grant.resource_metadata)

    async def request(self) -> httpx2.Request:
        """Return the request to the token endpoint."""
        return await self._refresh_token()


class _NoStorage:
    """What is stored is nobody's business here."""

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep nothing."""

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep nothing."""


class _Error(msgspec.Struct):
    error: str


def _error_of(response: httpx2.Response) -> str | None:
    # Some servers say it with status 200.
    try:
        return error_code(msgspec.json.decode(response.content, type=_Error).error)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _tokens_of(response: httpx2.Response) -> OAuthToken | None:
    if response.status_code not in (200, 201):
        return None
    try:
        return OAuthToken.model_validate_json(response.content)
    except ValidationError:
        return None
