"""Services of an engine over a journal, a browser that agrees at once, and requests with a stored token."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
import pytest

from engine.contract import Scope
from engine.credentials import MasterKeys, Vault
from engine.mcp.oauth import oauth_auth, place_of
from engine.mcp.oauth_flow import authorize
from engine.mcp.refreshing import Grants
from engine.mcp.token_store import Kept, TokenStore
from engine.migration import CHAINS
from engine.net.allow_list import AllowList
from engine.net.policy import NetPolicy
from engine.net.transport2 import client_factory
from engine.services import Services
from events.opening import open_log
from projections.attempts import AttemptsProjection

__all__ = ("KEYS", "NET", "agree", "browse", "consented", "get", "kept_of", "logged", "scope_of", "serving", "store_of")

KEYS = MasterKeys("k1", {"k1": bytes(range(32))})
NET = NetPolicy(allow=AllowList(("127.0.0.1",)))


@asynccontextmanager
async def serving(url: str, net: NetPolicy = NET, keys: MasterKeys = KEYS) -> AsyncIterator[Services]:
    """Open what the tools of one engine share, over a journal that is there."""
    log = await open_log(url, AttemptsProjection(), CHAINS)
    services = Services(net, vault=Vault(keys), store=log.store)
    try:
        yield services
    finally:
        await services.aclose()
        await log.aclose()


def scope_of(services: Services, user: str | None = "u", owner: str | None = "u", tool_id: str = "t1") -> Scope:
    """Return the scope of a row."""
    return Scope(user_id=user, owner=owner, tool_id=tool_id, services=services)


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """Return what has been logged, but for the browser's own log: a browser knows the code that it carries."""
    return "\n".join(caplog.handler.format(record) for record in caplog.records if record.name != "httpx")


async def browse(url: str) -> httpx.Response:
    """Open a URL as a browser does: follow wherever it leads."""
    async with httpx.AsyncClient(follow_redirects=True) as browser:
        return await browser.get(url)


async def agree(url: str) -> None:
    """Open the URL, and let the authorization server agree at once."""
    page = await browse(url)
    assert page.status_code == 200, page.text
    assert page.headers["content-type"].startswith("text/plain")


async def consented(
    url: str, scope: Scope, scopes: str | Sequence[str] | None = None, *, show: Any = agree, **options: Any
) -> None:
    """Authorize a server, with a browser that agrees."""
    await authorize(url, scopes, "Calljournal of a test", scope, show, **options)


async def get(url: str, scope: Scope, server_url: str | None = None) -> httpx2.Response:
    """Send one GET with the token that is stored for a server (None: for this URL)."""
    services = scope.services
    auth = oauth_auth(url if server_url is None else server_url, scope)
    make = client_factory(services.net, services.resolver, services.tls)
    async with make(auth=auth) as client:
        return await client.get(url)


def store_of(url: str, scope: Scope) -> TokenStore:
    """Return where a row's authorization is stored."""
    return scope.services.shared(Grants).at(place_of(url, scope))


async def kept_of(url: str, scope: Scope) -> Kept:
    """Return a row's authorization, which is there."""
    kept = await store_of(url, scope).read()
    assert kept is not None
    return kept
