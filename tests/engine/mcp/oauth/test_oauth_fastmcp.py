"""A real FastMCP server with its own authorization server, used by ``mcp_tool`` in an engine."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from fastmcp.server.dependencies import get_access_token
from mcp.server.auth.settings import ClientRegistrationOptions

from engine import Engine, Settings
from events import Executed
from tests.engine.mcp.oauth.consents import KEYS, NET, consented, logged, scope_of, serving
from tests.engine.mcp.serving import mcp_row
from tests.engine.staging import call, outcome_of


@contextmanager
def _protected() -> Iterator[tuple[InMemoryOAuthProvider, str]]:
    """Serve FastMCP's own authorization server, and a tool that says which client calls it."""
    listener = socket.create_server(("127.0.0.1", 0))
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    registration = ClientRegistrationOptions(enabled=True, valid_scopes=["read", "write"])
    provider = InMemoryOAuthProvider(
        base_url=origin, client_registration_options=registration, required_scopes=["read"]
    )
    server: FastMCP[Any] = FastMCP("protected", auth=provider)

    @server.tool
    def whoami() -> str:
        """Say which client calls."""
        token = get_access_token()
        return f"{token.client_id} with {token.token}" if token else "nobody"

    config = uvicorn.Config(server.http_app(path="/mcp"), log_level="critical", timeout_graceful_shutdown=1)
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield provider, f"{origin}/mcp"
    finally:
        running.should_exit = True
        thread.join(10)


async def _whoami(engine: Engine, call_id: str) -> tuple[str, str]:
    outcome = await outcome_of(engine, call({}, call_id=call_id, name="whoami"))
    assert isinstance(outcome, Executed), outcome
    return outcome.status, str(outcome.result)


@pytest.mark.anyio
async def test_case_otel_03_tokens_of_a_fastmcp_server_are_used_and_never_shown(
    sqlite_url: str, station: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Not before a person has agreed; then with the token, with its successor, and after another consent as that."""
    caplog.set_level(logging.DEBUG)
    with _protected() as (provider, url):
        row = mcp_row(url, auth_type="oauth", oauth_scopes="read", actions_metadata=[_WHOAMI])
        settings = Settings(net=NET, master_keys=KEYS)
        async with (
            Engine.open(sqlite_url, rows=[row], settings=settings) as engine,
            serving(sqlite_url) as services,
        ):
            whoami = partial(_whoami, engine)
            status, said = await whoami("c1")
            assert status == "error"
            assert "has not been authorized; run `calljournal tools authorize t1`" in said
            assert provider.clients == {}
            await consented(url, scope_of(services), "read")
            (first,) = provider.clients
            status, said = await whoami("c2")
            assert (status, first in said) == ("completed", True), said
            tokens = {*provider.access_tokens, *provider.refresh_tokens}
            # Only the access token ends: a renewal follows, and the session goes on.
            provider.access_tokens.clear()
            status, said = await whoami("c3")
            assert (status, first in said) == ("completed", True), said
            assert tokens.isdisjoint(provider.refresh_tokens)
            await consented(url, scope_of(services), "read")
            _, second = provider.clients
            status, said = await whoami("c4")
            assert (status, second in said) == ("completed", True), said
            tokens |= {*provider.access_tokens, *provider.refresh_tokens}
            journalled = str([record.event async for record in engine.log.read_all()])
            told = journalled + logged(caplog) + station.all_of_it()
            assert [token for token in tokens if token in told] == []
        written = b"".join(path.read_bytes() for path in Path(sqlite_url.removeprefix("sqlite:///")).parent.iterdir())
        assert len(tokens) >= 4
        assert [token for token in tokens if token.encode() in written] == []


_WHOAMI = {"name": "whoami", "description": "Say which client calls.", "parameters": {"type": "object"}}
