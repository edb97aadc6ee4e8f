"""A collection's authentication, of whatever level: where it puts which credential."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

from engine.api.client_credentials import ClientAuth
from engine.api.headers import header_name
from engine.api.importing.examples import sounds_secret
from engine.api.importing.imported import Unimportable
from engine.api.importing.postman_credentials import PostmanCredentials
from engine.api.importing.postman_entries import settings_of
from engine.api.importing.postman_variables import Variables
from engine.api.operation import Injection
from engine.refusals import kind_of_json, quoted

__all__ = ("PostmanAuth",)


class PostmanAuth:
    """Reads the authentication of the requests of one collection."""

    def __init__(self, credentials: PostmanCredentials) -> None:
        self._credentials = credentials

    def injections(self, stated: Any, variables: Variables) -> tuple[Injection, ...]:
        """Return where the credentials go; nowhere for ``noauth``.

        :raises Unimportable: if it is of a kind that no secret of a row can satisfy, or says too little
        """
        if stated is None:
            return ()
        if not isinstance(stated, dict) or not isinstance(stated.get("type"), str):
            raise Unimportable(f"its authentication is {kind_of_json(stated)} without a type")
        kind = stated["type"].strip().lower()
        if kind in ("noauth", "none"):
            return ()
        settings = settings_of(stated.get(stated["type"]))
        match kind:
            case "apikey":
                return (self._api_key(settings, variables),)
            case "bearer":
                return (self._credentials.bearer(settings.get("token", ""), variables),)
            case "basic":
                pair = settings.get("username", ""), settings.get("password", "")
                return (self._credentials.basic(*pair, variables),)
            case "oauth2":
                return (self._oauth2(settings, variables),)
        raise Unimportable(f"it needs {quoted(kind[:40])} authentication, which is not supported")

    def _api_key(self, settings: dict[str, str], variables: Variables) -> Injection:
        name = _plain(settings, "key", variables)
        if not name:
            raise Unimportable("its API key has no name")
        if settings.get("in", "header") == "query":
            return self._credentials.named("query", name, settings.get("value", ""), variables)
        return self._credentials.named("header", header_name(name), settings.get("value", ""), variables)

    def _oauth2(self, settings: dict[str, str], variables: Variables) -> Injection:
        """Return a client's own tokens where they are what is asked for; else an access token that a person gives."""
        if settings.get("grant_type") == "client_credentials":
            return self._client(settings, variables)
        token = settings.get("accessToken", "")
        if settings.get("addTokenTo") == "queryParams":
            return self._credentials.named("query", "access_token", token, variables)
        prefix = _plain(settings, "headerPrefix", variables) or "Bearer"
        if prefix.lower() == "bearer":
            return self._credentials.bearer(token, variables)
        return self._credentials.named("header", "Authorization", token, variables, f"{prefix} ")

    def _client(self, settings: dict[str, str], variables: Variables) -> Injection:
        url = _plain(settings, "accessTokenUrl", variables)
        if settings.get("addTokenTo") == "queryParams":
            raise Unimportable("its OAuth 2 token goes into the query, which is not supported")
        if any(sounds_secret(name) for name, _ in parse_qsl(urlsplit(url).query)):
            raise Unimportable("its OAuth 2 token URL has a secret in its query, which is not supported")
        client_auth: ClientAuth = "body" if settings.get("client_authentication") == "body" else "basic"
        return Injection(
            place="oauth2",
            token_url=url,
            client_id=self._credentials.secret(
                "client_id", settings.get("clientId", ""), variables, "The client's id (OAuth 2)."
            ),
            client_secret=self._credentials.secret(
                "client_secret", settings.get("clientSecret", ""), variables, "The client's secret (OAuth 2)."
            ),
            scopes=tuple(_plain(settings, "scope", variables).split()),
            audience=_plain(settings, "audience", variables),
            resource=_plain(settings, "resource", variables),
            client_auth=client_auth,
        )


def _plain(settings: dict[str, str], name: str, variables: Variables) -> str:
    text = variables.expanded(settings.get(name, "")).plain
    if text is None:
        raise Unimportable(f"its authentication's {name} has a variable that is secret or has no value")
    return text.strip()
