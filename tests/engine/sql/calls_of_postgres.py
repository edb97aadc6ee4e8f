"""Calls of the tool ``postgres`` as the engine makes them, and what is left of them on the server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import asyncpg

from engine.contract import Scope, ToolResult
from engine.net import AllowList, NetPolicy
from engine.services import Services
from engine.tools.postgres import Postgres
from tests.engine.api.calls import context_of
from tests.postgres_server import PostgresServer

__all__ = ("CallOfPostgres", "calling_postgres", "error_text", "nobody_left", "rows_of", "sessions", "sleeping")


class CallOfPostgres:
    """Calls one row's actions."""

    def __init__(self, tool: Postgres) -> None:
        self.tool = tool

    async def __call__(self, action: str, sql: str | None = None, /, *, seconds: float = 40.0, **arguments: Any) -> Any:
        if sql is not None:
            arguments["sql_query"] = sql
        return await self.tool.execute_action(f"postgres_{action}", context_of(seconds), **arguments)


@asynccontextmanager
async def calling_postgres(
    url: str,
    *,
    owner: str = "u",
    allow: tuple[str, ...] = ("127.0.0.1", "localhost"),
    resolver: Any = None,
    tls: Any = None,
    store: Any = None,
    **config: Any,
) -> AsyncIterator[CallOfPostgres]:
    """Give out a row's tool to call."""
    services = Services(NetPolicy(allow=AllowList(allow)), resolver=resolver, tls=tls, store=store)
    scope = Scope(user_id=owner, owner=owner, tool_id="t1", services=services)
    try:
        yield CallOfPostgres(Postgres({"token": url, **config}, scope))
    finally:
        await services.aclose()


def error_text(result: Any) -> str:
    """Return what an error result says."""
    assert isinstance(result, ToolResult), result
    assert result.status == "error"
    assert result.data["status_code"] == 500
    assert result.data["message"]
    assert result.data["error"].startswith("Database error: ")
    return str(result.data["error"])


def rows_of(result: Any) -> list[list[Any]]:
    """Return the rows of a result, their values in the order of the columns."""
    assert isinstance(result, dict), result.data
    assert result["status_code"] == 200
    names = result["response_data"]["column_names"]
    assert len(set(names)) == len(names) == len(result["response_data"]["column_types"])
    return [[row[name] for name in names] for row in result["response_data"]["data"]]


def sessions(server: PostgresServer, url: str) -> list[str]:
    """Return the statements of the tools' sessions in a database."""

    async def read(url: str) -> list[str]:
        connection = await asyncpg.connect(url)
        try:
            asked = (
                "SELECT query FROM pg_stat_activity"
                " WHERE datname = current_database() AND application_name = 'calljournal'"
            )
            return [row[0] for row in await connection.fetch(asked)]
        finally:
            await connection.close()

    return server.run(read, url)


async def sleeping(server: PostgresServer, url: str, number: int) -> None:
    """Wait until so many sessions run ``pg_sleep``."""
    with anyio.fail_after(10):
        while sum("pg_sleep" in query for query in sessions(server, url)) < number:
            await anyio.sleep(0.01)


async def nobody_left(server: PostgresServer, url: str) -> None:
    """Wait until no session of a tool is left; a server notices within milliseconds."""
    with anyio.fail_after(5):
        while sessions(server, url):
            await anyio.sleep(0.01)
