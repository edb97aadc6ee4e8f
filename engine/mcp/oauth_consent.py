"""One consent: mcp's own provider makes the requests and checks what the metadata say, we carry the requests out.

What comes back from an authorization server is judged here before the provider sees it: the provider's errors and log
lines quote whole responses, with the tokens in them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import httpx2
import msgspec
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.utils import extract_resource_metadata_from_www_auth, extract_scope_from_www_auth
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import LATEST_PROTOCOL_VERSION
from pydantic import AnyUrl, BaseModel, ValidationError

from engine.credentials import CredentialsError
from engine.mcp.oauth_callback import Callback
from engine.mcp.oauth_errors import AuthorizationFailed, AuthorizationUnavailable, error_code, shown
from engine.mcp.oauth_grant import Grant, stale_at
from engine.mcp.oauth_http import OAuthHttp
from engine.mcp.refreshing import Grants, Place
from engine.mcp.token_store import TokenStore
from engine.services import Services
from events.keys import new_id

__all__ = ("Consenting", "ShowUrl")

ShowUrl: TypeAlias = Callable[[str], Awaitable[None]]

_AUTHORIZATION_SERVER: Final = ("/oauth-authorization-server", "/openid-configuration")


class Consenting:
    """Gets one consent and stores it. The parameters are those of ``oauth_flow.authorize``."""

    def __init__(
        self,
        place: Place,
        scopes: tuple[str, ...],
        client_name: str,
        services: Services,
        show_url: ShowUrl,
        callback: Callback,
    ) -> None:
        self._place = place
        self._scopes = scopes
        self._http = OAuthHttp(services)
        self._store: TokenStore = services.shared(Grants).at(place)
        self._show_url = show_url
        self._callback = callback
        self._collected = _Collected()
        metadata = OAuthClientMetadata(
            client_name=client_name,
            redirect_uris=[AnyUrl(callback.uri)],
            token_endpoint_auth_method="none",  # noqa: S106
            scope=" ".join(scopes) or None,
        )
        # Adding the filter again changes nothing.
        logging.getLogger("mcp.client.auth.oauth2").addFilter(_is_no_error)
        self._provider = OAuthClientProvider(place.url, metadata, self._collected, self._redirect, self._answered)

    async def run(self) -> None:
        """Go from the first request to the stored tokens.

        :raises AuthorizationFailed: if it comes to nothing
        :raises AuthorizationUnavailable: if a server cannot be reached
        :raises Refused: if a URL is not allowed
        :raises LogUnavailable: if the database cannot be read or written
        """
        self._collected.client = await self._reusable()
        try:
            await self._drive()
        except OAuthFlowError as error:
            raise AuthorizationFailed(shown(str(error))) from None
        await self._store.put(self._grant())

    async def _reusable(self) -> OAuthClientInformationFull | None:
        """Return the stored registration, if it can be used with this redirect URI."""
        try:
            kept = await self._store.read()
        except CredentialsError:
            return None
        if kept is None or kept.grant.refused in ("invalid_client", "unauthorized_client"):
            return None
        client = OAuthClientInformationFull.model_validate(kept.grant.client_metadata)
        ended = client.client_secret_expires_at
        known = self._callback.uri in map(str, client.redirect_uris or ())
        return client if known and not (ended and ended <= time.time()) else None

    async def _drive(self) -> None:
        headers = {
            "Accept": "application/json, text/event-stream",
            MCP_PROTOCOL_VERSION_HEADER: LATEST_PROTOCOL_VERSION,
        }
        probe = httpx2.Request("GET", self._place.url, headers=headers)
        flow = self._provider.async_auth_flow(probe)
        try:
            request = await anext(flow)
            while True:
                look = self._verified if "Authorization" in probe.headers else self._challenged
                response = await (look(request) if request is probe else self._exchanged(request))
                request = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    async def _challenged(self, probe: httpx2.Request) -> httpx2.Response:
        """Ask the server without a token. Whatever it says, the flow begins; configured scopes come before its own."""
        response = await self._http.look(probe)
        scope = " ".join(self._scopes) or extract_scope_from_www_auth(response)
        named = {"resource_metadata": extract_resource_metadata_from_www_auth(response), "scope": scope}
        challenge = ", ".join(f'{name}="{value}"' for name, value in named.items() if value)
        return httpx2.Response(401, headers={"WWW-Authenticate": f"Bearer {challenge}"}, request=probe)

    async def _verified(self, probe: httpx2.Request) -> httpx2.Response:
        """Ask the server with the new token: one that it turns down is not worth storing."""
        try:
            response = await self._http.look(probe)
        except AuthorizationUnavailable:
            return httpx2.Response(200, request=probe)
        if response.status_code in (401, 403):
            said = f"HTTP {response.status_code}"
            raise AuthorizationFailed(f"{shown(self._place.url)} turns down the token that it was given ({said})")
        return httpx2.Response(200, request=probe)

    async def _exchanged(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._http.send(request)
        if request.method == "POST":
            _check_exchange(response)
        elif _is_down(response) and any(part in request.url.path for part in _AUTHORIZATION_SERVER):
            # The provider would go on with endpoints that it guesses.
            raise _down(response, "say where its endpoints are")
        return response

    async def _redirect(self, authorization_url: str) -> None:
        url = httpx2.URL(authorization_url)
        metadata = self._provider.context.oauth_metadata
        if metadata is not None and "S256" not in (metadata.code_challenge_methods_supported or ()):
            raise AuthorizationFailed(f"{url.host} does not support PKCE with S256, without which no code is safe")
        # A browser stands inside the network that the policy keeps requests out of.
        await self._http.check(url)
        self._callback.expect(url.params["state"])
        await self._show_url(authorization_url)

    async def _answered(self) -> AuthorizationCodeResult:
        consent = await self._callback.consent()
        return AuthorizationCodeResult(code=consent.code, state=consent.state, iss=consent.issuer)

    def _grant(self) -> Grant:
        tokens, client = self._collected.tokens, self._collected.client
        if tokens is None or client is None:
            raise AuthorizationFailed(f"{shown(self._place.url)} asks for no authorization")
        context = self._provider.context
        return Grant(
            consent=new_id(),
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token,
            scope=tokens.scope,
            stale_at=stale_at(time.time(), tokens.expires_in),
            client_metadata=_document(client) or {},
            server_metadata=_document(context.oauth_metadata),
            resource_metadata=_document(context.protected_resource_metadata),
            protocol_version=context.protocol_version,
        )


class _Collected:
    """What the provider would store; it is stored together, when all of it is there."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class _Error(msgspec.Struct):
    error: str


def _is_no_error(record: logging.LogRecord) -> bool:
    """Keep the library's errors out of its log: they quote servers, and are raised, and said by us, all the same."""
    return not record.exc_info


def _check_exchange(response: httpx2.Response) -> None:
    """Refuse what a registration or a token request did not bring.

    :raises AuthorizationFailed: if it is no registration, or no token
    :raises AuthorizationUnavailable: if the server cannot answer now
    """
    registering = response.request.headers["Content-Type"].startswith("application/json")
    what = "register a client" if registering else "give a token"
    if _is_down(response):
        raise _down(response, what)
    model: type[BaseModel] = OAuthClientInformationFull if registering else OAuthToken
    host = response.request.url.host
    if response.status_code in (200, 201):
        try:
            model.model_validate_json(response.content)
        except ValidationError:
            raise AuthorizationFailed(f"{host} did not {what}: its response is none") from None
        return
    code = _error_of(response)
    said = f"{code}, HTTP {response.status_code}" if code else f"HTTP {response.status_code}"
    raise AuthorizationFailed(f"{host} did not {what} ({said})")


def _is_down(response: httpx2.Response) -> bool:
    return response.status_code == 429 or response.status_code >= 500


def _down(response: httpx2.Response, what: str) -> AuthorizationUnavailable:
    host, status = response.request.url.host, response.status_code
    return AuthorizationUnavailable(f"{host} cannot {what} now (HTTP {status}); try again later")


def _error_of(response: httpx2.Response) -> str | None:
    try:
        return error_code(msgspec.json.decode(response.content, type=_Error).error)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _document(model: BaseModel | None) -> dict[str, object] | None:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)
