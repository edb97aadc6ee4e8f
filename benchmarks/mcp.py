"""A warm call of a server's tool through ``mcp_tool``, beside one by the bare client of MCP, to a FastMCP server here.

Run as ``python -m benchmarks.mcp``. Both call the same tool with the same arguments, turn by turn; neither writes to a
journal. Shown are the time of a call, the waiting for the server included, and the client's CPU time in it.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import anyio

from benchmarks.command import main
from benchmarks.figures import Figure
from benchmarks.interleaved import Times, compared, measured_round
from benchmarks.loops import LOOPS, run_on
from benchmarks.scale import Scale
from benchmarks.serving import serve, served
from engine.contract import Scope, ToolContext, ToolResult
from engine.net.allow_list import AllowList
from engine.net.policy import NetPolicy
from engine.services import Services
from engine.tools.mcp_tool import MCPTool

__all__ = ("measure_mcp",)

_GOAL = 1.5
_CALLS = 5
_ARGUMENTS = {"bay": 7, "note": "three crates, one of them open"}


def measure_mcp(scale: Scale) -> list[Figure]:
    """Return how long a warm call takes, and how much longer than the bare client's."""
    figures: list[Figure] = []
    with served("benchmarks.mcp", "--serve") as origin:
        for loop in LOOPS:
            figures += compared(f"MCP call, {loop}", run_on(loop, _measured, f"{origin}/mcp", scale), _GOAL)
    return figures


async def _measured(url: str, scale: Scale) -> list[Times]:
    """Return for each round, for each client, its turns' seconds a call."""
    from mcp import Client

    async with anyio.create_task_group() as tasks:
        services = Services(NetPolicy(allow=AllowList(("127.0.0.1",))), tasks=tasks)
        tool = MCPTool({"server_url": url}, Scope(user_id="u", owner="u", tool_id="t1", services=services))
        async with Client(url) as bare:
            works = {"mcp_tool": partial(_through_tool, tool), "bare mcp": partial(_bare, bare)}
            for work in works.values():
                await work()
            rounds = [await measured_round(works, scale.slice, _CALLS) for _ in range(scale.rounds)]
        await services.aclose()
    return rounds


async def _through_tool(tool: MCPTool) -> None:
    result = await tool.execute_action("look", _context(), **_ARGUMENTS)
    assert isinstance(result, ToolResult)
    assert result.status == "completed"


async def _bare(client: Any) -> None:
    assert not (await client.call_tool("look", _ARGUMENTS)).is_error


class _NoStore:
    """The tool has nothing to store."""

    tenant = ""
    tool_id = "t1"
    dialect = "sqlite"

    async def read(self, statement: Any) -> Sequence[Any]:
        raise NotImplementedError

    async def write(self, *statements: Any) -> list[int]:
        raise NotImplementedError


def _context() -> ToolContext:
    return ToolContext(
        user_id="u",
        message_id="m",
        call_id="c",
        conversation_id=None,
        run_id=None,
        agent_id=None,
        attachments=(),
        idempotency_key="m:c",
        deadline=datetime.now(UTC) + timedelta(seconds=30),
        progress=lambda _, __, ___: None,
        store=_NoStore(),
    )


def _work(listener: socket.socket) -> None:
    import uvicorn
    from fastmcp import FastMCP

    served_here: FastMCP[Any] = FastMCP("yard")

    @served_here.tool
    def look(bay: int, note: str) -> str:
        return f"{bay}: {note}"

    server = uvicorn.Server(uvicorn.Config(served_here.http_app(path="/mcp"), log_level="critical"))
    server.run(sockets=[listener])


if __name__ == "__main__":
    if "--serve" in sys.argv:
        serve(_work)
    else:
        main(alone=[measure_mcp])
