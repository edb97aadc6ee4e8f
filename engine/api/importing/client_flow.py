"""OAuth 2's client credentials in a document: the flow's token URL, as one that a token can be asked for at."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin

import msgspec

from engine.api.client_credentials import scope_fault, token_url_fault

__all__ = ("client_token_url", "scopes_of")


class _Flow(msgspec.Struct, rename="camel"):
    token_url: str


class _Flows(msgspec.Struct, rename="camel"):
    client_credentials: _Flow


class _Swagger(msgspec.Struct, rename="camel"):
    flow: str
    token_url: str


def client_token_url(scheme: Any, base_url: str) -> str | None:
    """Return where a scheme gives tokens to clients; None: it has no such flow, or names no URL that can be called.

    :param base_url: of the document's server, which a relative URL is relative to; empty: there is none
    """
    stated = _stated(scheme)
    if stated is None:
        return None
    url = urljoin(f"{base_url}/", stated.strip()) if base_url else stated.strip()
    return url if token_url_fault(url) is None else None


def scopes_of(requirement: Any) -> tuple[str, ...]:
    """Return the scopes that an operation requires; what cannot be one is left out."""
    listed = requirement if isinstance(requirement, list) else []
    return tuple(dict.fromkeys(each for each in listed if isinstance(each, str) and scope_fault([each]) is None))


def _stated(scheme: Any) -> str | None:
    stated = scheme if isinstance(scheme, dict) else {}
    try:
        return msgspec.convert(stated.get("flows"), _Flows).client_credentials.token_url
    except msgspec.ValidationError:
        pass
    try:
        swagger = msgspec.convert(stated, _Swagger)
    except msgspec.ValidationError:
        return None
    return swagger.token_url if swagger.flow == "application" else None
