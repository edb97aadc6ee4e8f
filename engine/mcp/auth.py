"""How requests to an MCP server are authenticated."""

from __future__ import annotations

import base64
from collections.abc import Generator, Mapping
from typing import Any

import httpx2

from engine.contract import Scope
from engine.mcp.server import Server

__all__ = ("auth_for",)


async def auth_for(config: Mapping[str, Any], scope: Scope, interactive: bool = False) -> httpx2.Auth | None:
    """Return what authenticates a row's requests; None: nothing does, or a header of the row.

    :param interactive: a person is there who may be asked to sign in; never so during a call
    :raises InvalidServer: if a credential is missing
    :raises SignInNeeded: if only a person can give access, and none is there
    """
    server = Server.of(config)
    secrets = dict(server.secrets)
    match server.auth:
        case "bearer":
            return _Authorization(f"Bearer {secrets['bearer_token']}")
        case "basic":
            pair = f"{secrets['username']}:{secrets['password']}".encode()
            return _Authorization(f"Basic {base64.b64encode(pair).decode()}")
        case "oauth":
            # Imported here: most servers need none of it.
            from engine.mcp.oauth import oauth_for

            return await oauth_for(config, scope, interactive)
        case _:
            return None


class _Authorization(httpx2.Auth):
    """Puts one header on every request. Its ``repr`` shows nothing of it."""

    def __init__(self, value: str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "<authorization>"

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        request.headers["Authorization"] = self._value
        yield request
