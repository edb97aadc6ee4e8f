"""What a call's span says of its server, and how the trace gets there."""

from __future__ import annotations

from typing import Any

import pytest

from engine import CallContext
from events import Executed
from tests.engine.mcp.scripted_server import scripted_server
from tests.engine.mcp.serving import U, mcp_engine, mcp_row
from tests.engine.staging import call, outcome_of

LABELS = {"mcp.method.name", "gen_ai.tool.name", "error.type"}

pytestmark = pytest.mark.anyio


async def test_the_call_s_own_span_has_the_server_s_attributes_and_there_is_no_second(station: Any) -> None:
    with scripted_server() as server:
        async with mcp_engine(mcp_row(server.url)) as engine:
            with station.tracer.start_as_current_span("turn"):
                outcome = await outcome_of(engine, call({"bay": 1}, name="look"), U)
            assert isinstance(outcome, Executed)
            (asked,) = server.calls()
            whole = station.exporter.get_finished_spans()
            (span,) = [each for each in whole if each.name.startswith("execute_tool")]
            assert [each.name for each in whole if "MCP" in each.name or "tools/call" in each.name] == []
            stated = dict(span.attributes or {})
            assert stated["mcp.method.name"] == "tools/call"
            assert stated["mcp.session.id"] == "s1"
            assert stated["mcp.protocol.version"] == "2025-11-25"
            assert stated["jsonrpc.request.id"] == str(asked.number)
            assert stated["network.transport"] == "tcp"
            assert stated["server.address"] == "127.0.0.1"
            assert f"127.0.0.1:{stated['server.port']}" in server.url
            trace, parent = f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}"
            assert asked.params["_meta"]["traceparent"].startswith(f"00-{trace}-{parent}-")


async def test_errors_are_told_apart(station: Any) -> None:
    with scripted_server() as server:
        async with mcp_engine(mcp_row(server.url)) as engine:
            server.answers["call look"] = lambda _: {"isError": True, "content": []}
            await outcome_of(engine, call({"bay": 1}, name="look"), U)
            (failed,) = station.spans()
            assert (failed.attributes or {})["error.type"] == "tool_error"
            server.answers["call look"] = lambda _: {"code": -32602, "message": "no"}
            await outcome_of(engine, call({"bay": 1}, call_id="c2", name="look"), CallContext(user_id="u"))
            (refused,) = station.spans()
            assert (refused.attributes or {})["rpc.response.status_code"] == "-32602"
        errors = {
            point.attributes.get("error.type")
            for point in station.points("mcp.client.operation.duration")
            if point.attributes["gen_ai.tool.name"] == "look"
        }
        assert "tool_error" in errors
        assert all(set(point.attributes) <= LABELS for point in station.points("mcp.client.operation.duration"))
