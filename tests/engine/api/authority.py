"""A token endpoint and an API behind it, as a test has them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from engine.contract import Scope
from engine.services import Services
from tests.engine.api.calls import LOCAL
from tests.engine.api.raw_server import RawServer, answer, raw_server

__all__ = ("CLIENT", "bearers", "entry", "given", "scope_of", "serving", "two_servers")

CLIENT = {"id": "client 1é", "key": "s3cr3t:/+ &é"}
"""The client's id and secret, as the row's credentials."""


def entry(authority: RawServer, **more: Any) -> dict[str, Any]:
    """Return the entry of security for a token endpoint."""
    return {
        "in": "oauth2",
        "token_url": f"{authority.origin}/token",
        "client_id": "id",
        "client_secret": "key",
        **more,
    }


def given(token: Any = "token-1", **more: Any) -> bytes:
    """Return the answer that gives a token."""
    return answer(json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": 3600, **more}).encode())


def scope_of(services: Services, owner: str | None = "u", user: str | None = "u", tool_id: str = "t1") -> Scope:
    """Return whose call it is."""
    return Scope(user_id=user, owner=owner, tool_id=tool_id, services=services)


def bearers(api: RawServer) -> list[str | None]:
    """Return what Authorization an API was sent, request by request."""
    return [each.header("authorization") for each in api.received]


@contextmanager
def two_servers() -> Iterator[tuple[RawServer, RawServer]]:
    """Run a token endpoint that gives ``token-1``, and an API."""
    with raw_server() as authority, raw_server() as api:
        authority.answers = [given()]
        yield authority, api


@asynccontextmanager
async def serving(**more: Any) -> AsyncIterator[Services]:
    """Yield services that may reach the test's servers, and close them."""
    services = Services(LOCAL, **more)
    try:
        yield services
    finally:
        await services.aclose()
