"""Real MCP servers on this machine, and engines that have rows for servers."""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Literal

import uvicorn
from fastmcp import FastMCP

from engine import CallContext, Engine, Settings, ToolRow
from engine.net import AllowList, NetPolicy

__all__ = ("LOCAL", "U", "V", "mcp_engine", "mcp_row", "real_server")

LOCAL = NetPolicy(allow=AllowList(("127.0.0.1",)))
U = CallContext(user_id="u", message_id="m")
V = CallContext(user_id="v", message_id="m")


@contextmanager
def real_server(server: FastMCP[Any], transport: Literal["http", "sse"] = "http") -> Iterator[str]:
    """Serve a FastMCP server in a thread; give its URL."""
    path = "/sse" if transport == "sse" else "/mcp"
    listener = socket.create_server(("127.0.0.1", 0))
    app = server.http_app(transport=transport, path=path)
    config = uvicorn.Config(app, log_level="critical", lifespan="on", timeout_graceful_shutdown=1)
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}{path}"
    finally:
        running.should_exit = True
        thread.join(10)


def mcp_row(url: str, *, tool_id: str = "t1", user_id: str | None = "u", **config: Any) -> ToolRow:
    """Return a row for a server; its actions need no approval unless ``approval`` says so."""
    whole = {"server_url": url, "auth_type": "none", "approval": "never", **config}
    metadata = whole.pop("actions_metadata", None)
    return ToolRow(id=tool_id, name="mcp_tool", user_id=user_id, config=whole, actions_metadata=metadata)


@asynccontextmanager
async def mcp_engine(*rows: ToolRow, url: str = "sqlite://", guards: Sequence[Any] = ()) -> AsyncIterator[Engine]:
    """Open an engine with these rows that may reach this machine."""
    async with Engine.open(url, rows=rows, guards=guards, settings=Settings(net=LOCAL)) as engine:
        yield engine
