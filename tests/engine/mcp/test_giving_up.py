"""Calls of MCP servers that are cancelled or take too long: the server is told, and nothing of them is left."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Literal

import anyio
import anyio.to_thread
import pytest
from fastmcp import Context, FastMCP

from engine import Engine
from engine.mcp.sessions import Sessions
from events import Executed, Failed
from tests.engine.mcp.contexts import tool_context
from tests.engine.mcp.scripted_server import ScriptedServer, scripted_server
from tests.engine.mcp.serving import U, mcp_engine, mcp_row, real_server
from tests.engine.staging import call, events_of, outcome_of, proved

pytestmark = pytest.mark.anyio


def sockets() -> int:
    found = 0
    for each in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{each}").startswith("socket:")
        except OSError:
            continue
    return found


async def until(server: ScriptedServer, holds: Callable[[], Any]) -> None:
    assert await anyio.to_thread.run_sync(server.until, holds)


async def settled(holds: Callable[[], Any]) -> bool:
    """Return whether something comes to hold within five seconds, looking again and again."""
    with anyio.move_on_after(5):
        while not holds():
            await anyio.sleep(0.01)
        return True
    return False


async def undisturbed(seconds: float) -> None:
    """Let everything else have its turn; that costs next to nothing where there is nothing else."""
    with anyio.move_on_after(seconds):
        await anyio.Event().wait()


async def abandoned(engine: Engine, server: ScriptedServer, call_id: str = "c1") -> None:
    """Make a call that waits, and leave it as soon as the server has it."""
    before = len(server.calls())
    async with anyio.create_task_group() as calls:
        calls.start_soon(events_of, engine, call({"bay": 1}, call_id=call_id, name="look"), U)
        await until(server, lambda: len(server.calls()) > before)
        calls.cancel_scope.cancel()


async def test_case_mcp_08_a_call_that_is_left_leaves_nothing_behind() -> None:
    with scripted_server() as server:
        async with mcp_engine(mcp_row(server.url)) as engine:
            await outcome_of(engine, call({"bay": 1}, call_id="c0", name="look"), U)
            before = sockets()
            server.holding.add("tools/call")
            await abandoned(engine, server)
            await until(server, lambda: "notifications/cancelled" in server.methods())
            (told,) = [each for each in server.asked if each.method == "notifications/cancelled"]
            assert told.params["requestId"] == server.calls()[-1].number
            # The server would have held the call for ever: its connection is gone all the same.
            await until(server, lambda: server.open_posts == 0)
            assert await settled(lambda: sockets() <= before)
            spent = time.process_time()
            await undisturbed(0.3)
            assert time.process_time() - spent < 0.15
            row = await engine.attempt("m:c1", user_id="u")
            assert row is not None
            assert row.status == "failed"
            # The session lives on.
            server.holding.clear()
            outcome = await outcome_of(engine, call({"bay": 1}, call_id="c2", name="look"), U)
            assert isinstance(outcome, Executed)
            assert server.methods().count("initialize") == 1
            await proved(engine)


async def test_a_call_past_its_deadline_fails_as_that_and_the_server_is_told() -> None:
    with scripted_server() as server:
        async with mcp_engine(mcp_row(server.url, timeout=1)) as engine:
            server.holding.add("tools/call")
            began = time.monotonic()
            outcome = await outcome_of(engine, call({"bay": 1}, name="look"), U)
            assert isinstance(outcome, Failed)
            assert outcome.kind == "timeout"
            assert 0.9 < time.monotonic() - began < 3
            await until(server, lambda: "notifications/cancelled" in server.methods())
            await until(server, lambda: server.open_posts == 0)


async def test_a_deadline_of_the_call_s_own_goes_before_the_row_s_timeout() -> None:
    from tests.engine.mcp.test_listing import tool_for

    with scripted_server() as server:
        server.holding.add("tools/call")
        tool = tool_for(server.url, timeout=300)
        with pytest.raises(TimeoutError, match=r"came to no end in 0\.\d+ s; it may have had its effect"):
            await tool.execute_action("look", tool_context(seconds=0.3), bay=1)


async def test_a_server_that_takes_no_word_of_cancelling_holds_up_no_other_call() -> None:
    with scripted_server() as server:
        async with mcp_engine(mcp_row(server.url)) as engine:
            server.holding |= {"tools/call", "notifications/cancelled"}
            await abandoned(engine, server)
            server.holding -= {"tools/call"}
            outcome = await outcome_of(engine, call({"bay": 1}, call_id="c2", name="look"), U)
            assert isinstance(outcome, Executed)
            assert outcome.status == "completed"


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_real_server_stops_a_call_that_is_cancelled(transport: Literal["http", "sse"]) -> None:
    server: FastMCP[Any] = FastMCP("yard")
    seen: list[str] = []

    @server.tool
    async def wait(ctx: Context) -> str:
        seen.append("began")
        try:
            await anyio.sleep(30)
        except anyio.get_cancelled_exc_class():
            seen.append("stopped")
            raise
        return "never"

    with real_server(server, transport) as url:
        async with mcp_engine(mcp_row(url)) as engine:
            async with anyio.create_task_group() as calls:
                calls.start_soon(events_of, engine, call({}, name="wait"), U)
                assert await settled(lambda: "began" in seen)
                calls.cancel_scope.cancel()
            assert await settled(lambda: "stopped" in seen)
            assert len(engine._runtime.services.shared(Sessions)) == 1
