"""OAuth 2's client credentials in documents: the flow becomes a token that the engine asks for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from engine.api.importing import import_openapi
from engine.api.row_config import problems_of, wanted_secrets

__all__ = ()

AUTH = "https://auth.example/token"


def imported(scheme: dict[str, Any], *, server: str = "https://api.example/v1") -> Any:
    """Return the import of a document with this scheme and two operations, one with scopes of its own."""
    paths = {
        "/bays": {"get": {"operationId": "bays"}},
        "/docks": {"post": {"operationId": "docks", "security": [{"oAuth": ["a:write", "a:write", 'x"y', 7]}]}},
    }
    schemes = {"oAuth": scheme, "oAuth_clientId": {"type": "http", "scheme": "basic"}}
    security: list[Any] = [{"oAuth": ["read"]}]
    about = {"title": "t", "version": "1"}
    if "flow" in scheme:
        parts: dict[str, Any] = {"swagger": "2.0", "securityDefinitions": schemes, "host": "api.example"}
        document = parts | {"basePath": "/v1", "schemes": ["https"]}
    else:
        document = {"openapi": "3.0.3", "components": {"securitySchemes": schemes}, "servers": [{"url": server}]}
    return import_openapi(json.dumps({**document, "info": about, "security": security, "paths": paths}))


def flows(token_url: Any, **others: Any) -> dict[str, Any]:
    return {"type": "oauth2", "flows": {**others, "clientCredentials": {"tokenUrl": token_url, "scopes": {"read": ""}}}}


@pytest.mark.parametrize(
    ("scheme", "token_url"),
    [
        (flows(AUTH), AUTH),
        (flows(AUTH, authorizationCode={"authorizationUrl": AUTH, "tokenUrl": "https://x.example"}), AUTH),
        (flows("/oauth/token"), "https://api.example/oauth/token"),
        (flows("token?x=1"), "https://api.example/v1/token?x=1"),
        (flows("//auth.example/t"), "https://auth.example/t"),
        ({"type": "oauth2", "flow": "application", "tokenUrl": AUTH}, AUTH),
        ({"type": "oauth2", "flow": "application", "tokenUrl": "/t"}, "https://api.example/t"),
    ],
)
def test_the_client_credentials_flow_becomes_an_entry_of_security(scheme: dict[str, Any], token_url: str) -> None:
    result = imported(scheme)
    entry = {
        "in": "oauth2",
        "token_url": token_url,
        "client_id": "o_auth_client_id_2",
        "client_secret": "o_auth_client_secret",
    }
    assert result.config["security"] == [{**entry, "scopes": ["read"]}]
    assert result.actions["docks"]["security"] == [{**entry, "scopes": ["a:write"]}]
    assert wanted_secrets(result.config) == ("o_auth_client_id_2", "o_auth_client_secret")
    assert problems_of(result.config) == []
    assert {name: stated["description"] for name, stated in result.requirements.items()} == {
        "o_auth_client_id_2": f"The id of the OAuth 2 client; it is sent to {token_url}.",
        "o_auth_client_secret": f"The secret of the OAuth 2 client; it is sent to {token_url}.",
    }


@pytest.mark.parametrize(
    "scheme",
    [
        {"type": "oauth2", "flows": {"authorizationCode": {"authorizationUrl": AUTH, "tokenUrl": AUTH}}},
        {"type": "oauth2", "flow": "accessCode", "tokenUrl": AUTH},
        {"type": "oauth2", "flow": "application"},
        flows("https://{tenant}.auth.example/t"),
        flows("ftp://auth.example/t"),
        flows("https://user:pass@auth.example/t"),
        flows("https://auth.example/t#x"),
        flows(7),
        {"type": "oauth2", "flows": []},
        {"type": "oauth2"},
    ],
)
def test_other_flows_and_urls_that_cannot_be_called_take_an_access_token(scheme: dict[str, Any]) -> None:
    assert imported(scheme).config["security"] == [{"secret": "o_auth", "in": "bearer"}]
