"""A warm call of a server's tool through ``mcp_tool``, beside one by the bare client of MCP, to a FastMCP server here.

Run as ``python -m benchmarks.mcp``. Both call the same tool with the same arguments, turn by turn; neither writes to a
journal. Shown are the time of a call, the waiting for the server included, and the client's CPU time in it.
"""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import anyio

from benchmarks.command import main
from benchmarks.figures import Figure
from benchmarks.loops import LOOPS, run_on
from benchmarks.scale import Scale
from engine.contract import Scope, ToolContext, ToolResult
from engine.net.allow_list import AllowList
from engine.net.policy import NetPolicy
from engine.services import Services
from engine.tools.mcp_tool import MCPTool

__all__ = ("measure_mcp",)

_GOAL = 1.5
_CLOCKS = {"time": time.perf_counter, "CPU": time.thread_time}
_TURNS = 10
_CALLS = 5
_ARGUMENTS = {"bay": 7, "note": "three crates, one of them open"}
_Works = Mapping[str, Callable[[], Awaitable[None]]]
_Times = dict[tuple[str, str], list[float]]


def measure_mcp(scale: Scale) -> list[Figure]:
    """Return how long a warm call takes, and how much longer than the bare client's."""
    figures: list[Figure] = []
    with _server() as url:
        for loop in LOOPS:
            figures += _figures(f"MCP call, {loop}", run_on(loop, _measured, url, scale))
    return figures


def _figures(name: str, rounds: list[_Times]) -> list[Figure]:
    medians = [{work: statistics.median(times) for work, times in each.items()} for each in rounds]
    figures = [
        Figure.of(f"{name}: {work}, {clock}", "us", [1e6 * each[work, clock] for each in medians])
        for work, clock in medians[0]
    ]
    for clock in _CLOCKS:
        ratios = [each["mcp_tool", clock] / each["bare mcp", clock] for each in medians]
        figures.append(Figure.of(f"{name}: {clock}", "of bare", ratios, _GOAL, at_most=True))
    return figures


async def _measured(url: str, scale: Scale) -> list[_Times]:
    """Return for each round, for each client, its turns' seconds a call."""
    from mcp import Client

    async with anyio.create_task_group() as tasks:
        services = Services(NetPolicy(allow=AllowList(("127.0.0.1",))), tasks=tasks)
        tool = MCPTool({"server_url": url}, Scope(user_id="u", owner="u", tool_id="t1", services=services))
        async with Client(url) as bare:
            works = {"mcp_tool": partial(_through_tool, tool), "bare mcp": partial(_bare, bare)}
            for work in works.values():
                await work()
            rounds = [await _round(works, scale.slice) for _ in range(scale.rounds)]
        await services.aclose()
    return rounds


async def _round(works: _Works, seconds: float) -> _Times:
    gc.collect()
    times: _Times = defaultdict(list)
    ends = time.perf_counter() + seconds
    for turn in count():
        if turn >= _TURNS and time.perf_counter() > ends:
            break
        for name, work in works.items():
            started = [clock() for clock in _CLOCKS.values()]
            for _ in range(_CALLS):
                await work()
            for (label, clock), start in zip(_CLOCKS.items(), started, strict=True):
                times[name, label].append((clock() - start) / _CALLS)
    return times


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


@contextmanager
def _server() -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.mcp", "--serve"]
    folder = Path(__file__).parent.parent
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}/mcp"
        finally:
            server.terminate()


def _serve() -> None:
    import socket

    import uvicorn
    from fastmcp import FastMCP

    served: FastMCP[Any] = FastMCP("yard")

    @served.tool
    def look(bay: int, note: str) -> str:
        return f"{bay}: {note}"

    listener = socket.create_server(("127.0.0.1", 0))
    running = uvicorn.Server(uvicorn.Config(served.http_app(path="/mcp"), log_level="critical"))
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    # Whoever started it is gone when its input ends.
    threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    if "--serve" in sys.argv:
        _serve()
    else:
        main(alone=[measure_mcp])
