"""What a server's results become."""

from __future__ import annotations

import base64
import hashlib
from typing import Any, Literal

import pytest
from fastmcp import FastMCP
from fastmcp.tools import ToolResult as ServerResult
from mcp_types import ImageContent, TextContent

from engine.contract import ToolResult
from engine.mcp.blobs import Blobs
from engine.mcp.content import tool_result
from engine.mcp.schema import OutputSchemas
from events import Executed
from tests.engine.mcp.scripted_server import LOOK, scripted_server
from tests.engine.mcp.serving import U, mcp_engine, mcp_row, real_server
from tests.engine.staging import call, outcome_of

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n" + bytes(1_000_000)
PACKED = base64.b64encode(PNG).decode()
DIGEST = hashlib.sha256(PNG).hexdigest()


def read(result: dict[str, Any], schema: dict[str, Any] | None = None) -> tuple[ToolResult, dict[str, bytes]]:
    kept: dict[str, bytes] = {}
    schemas = OutputSchemas()
    made = tool_result(result, lambda value: schemas.problem("look", schema, value), kept.__setitem__)
    return made, kept


BLOCKS: list[Any] = [
    {"type": "text", "text": "plan"},
    {"type": "image", "mimeType": "image/png", "data": PACKED},
    {"type": "audio", "mimeType": "audio/wav", "data": base64.b64encode(b"RIFF").decode()},
    {"type": "resource_link", "uri": "yard://plan/7", "name": "plan 7", "size": 12},
    {"type": "resource", "resource": {"uri": "yard://bays", "text": "bay list"}},
    {
        "type": "resource",
        "resource": {"uri": "file:///../../etc/x", "mimeType": "application/pdf", "blob": "AAE="},
    },
    {"type": "hologram", "data": "x" * 5000},
    {"type": "image", "mimeType": "image/png", "data": "not base64!"},
    {"text": "no type"},
    "no object",
]


def test_case_mcp_09_every_kind_of_content_has_its_form_in_order() -> None:
    result, kept = read({"content": BLOCKS})
    assert result.status == "completed"
    assert result.data["content"] == [
        {"type": "text", "text": "plan"},
        {"type": "image", "mime_type": "image/png", "bytes": len(PNG), "sha256": DIGEST},
        {"type": "audio", "mime_type": "audio/wav", "bytes": 4, "sha256": hashlib.sha256(b"RIFF").hexdigest()},
        {"type": "resource_link", "uri": "yard://plan/7", "name": "plan 7", "bytes": 12},
        {"type": "resource", "uri": "yard://bays", "text": "bay list"},
        {
            "type": "resource",
            "uri": "file:///../../etc/x",
            "mime_type": "application/pdf",
            "bytes": 2,
            "sha256": hashlib.sha256(b"\x00\x01").hexdigest(),
        },
        {"type": "hologram", "note": "content of a kind that cannot be shown: hologram"},
        {"type": "image", "mime_type": "image/png", "note": "its data is no valid base64, and was left out"},
        {"type": "unknown", "note": "content that says no kind"},
        {"type": "unknown", "note": "content that says no kind"},
    ]
    assert kept[DIGEST] == PNG
    assert len(kept) == 3


def test_case_mcp_04_an_error_is_its_text_and_never_empty() -> None:
    said, _ = read(
        {
            "isError": True,
            "content": [{"type": "text", "text": "ledger is closed until 06:00"}],
            "structuredContent": {"total": 42},
        }
    )
    assert said == ToolResult(
        {"error": "ledger is closed until 06:00", "structured_content": {"total": 42}}, status="error"
    )
    for silent in (
        {"isError": True, "content": []},
        {"isError": True},
        {"isError": True, "content": [{"type": "text"}]},
    ):
        result, _ = read(silent)
        assert result.status == "error"
        assert "says that the call failed" in result.data["error"]


def test_structured_content_is_checked_by_its_schema() -> None:
    schema = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}
    right: dict[str, Any] = {"content": [], "structuredContent": {"total": 42}}
    wrong: dict[str, Any] = {"content": [{"type": "text", "text": "42"}], "structuredContent": {"total": "many"}}
    assert read(right, schema)[0] == ToolResult({"content": [], "structured_content": {"total": 42}})
    result, _ = read(wrong, schema)
    assert result.status == "error"
    assert result.data["error"].startswith("The tool ran, but")
    assert result.data["content"] == [{"type": "text", "text": "42"}]
    # Without structured content there is nothing to check; a schema that is none says nothing, nor one elsewhere.
    assert read({"content": []}, schema)[0].status == "completed"
    assert read(wrong, {"type": "no such type"})[0].status == "completed"
    assert read(wrong, {"$ref": "https://example.com/schema"})[0].status == "completed"
    assert read({"content": [], "structuredContent": [1, None]})[0].data["structured_content"] == [1, None]


def test_bytes_are_kept_for_a_while_and_each_user_s_apart() -> None:
    blobs = Blobs(most=10)
    blobs.keep("u", "a", b"12345")
    blobs.keep("u", "a", b"12345")
    blobs.keep("v", "b", b"12345")
    assert blobs.find("u", "a") == b"12345"
    assert blobs.find("v", "a") is None
    blobs.keep("u", "c", b"1")
    assert blobs.find("u", "a") is None
    assert blobs.find("v", "b") == b"12345"


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_case_mcp_09_only_an_image_from_a_real_server_is_no_empty_result(
    transport: Literal["http", "sse"],
) -> None:
    server: FastMCP[Any] = FastMCP("yard")

    @server.tool(annotations={"readOnlyHint": True})
    def draw() -> ServerResult:
        return ServerResult(content=[ImageContent(type="image", mime_type="image/png", data=PACKED)])

    @server.tool
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    def fail() -> ServerResult:
        return ServerResult(content=[TextContent(type="text", text="closed")], is_error=True)

    with real_server(server, transport) as url:
        async with mcp_engine(mcp_row(url)) as engine:
            drawn = await outcome_of(engine, call({}, name="draw"), U)
            assert isinstance(drawn, Executed)
            image = {"type": "image", "mime_type": "image/png", "bytes": len(PNG), "sha256": DIGEST}
            assert drawn.result == {"content": [image]}
            assert engine._runtime.services.shared(Blobs).find("u", DIGEST) == PNG
            added = await outcome_of(engine, call({"a": 1, "b": 2}, call_id="c2", name="add"), U)
            assert isinstance(added, Executed)
            assert added.result == {"content": [{"type": "text", "text": "3"}], "structured_content": {"result": 3}}
            failed = await outcome_of(engine, call({}, call_id="c3", name="fail"), U)
            assert isinstance(failed, Executed)
            assert failed.status == "error"
            assert failed.result["error"] == "closed"
            messages = str(await engine.tool_results("m", user_id="u"))
            assert "closed" in messages
            assert PACKED[:100] not in messages


async def test_case_mcp_09_an_unknown_kind_from_a_server_costs_no_call() -> None:
    with scripted_server() as server:
        server.tools = [{**LOOK, "outputSchema": {"type": "object", "required": ["total"]}}]
        server.answers["call look"] = lambda _: {"content": [{"type": "hologram"}, {"type": "text", "text": "x"}]}
        async with mcp_engine(mcp_row(server.url)) as engine:
            seen = await outcome_of(engine, call({}, name="look"), U)
            assert isinstance(seen, Executed)
            assert seen.status == "completed"
            assert [each["type"] for each in seen.result["content"]] == ["hologram", "text"]
            server.answers["call look"] = lambda _: {"content": [], "structuredContent": {"sum": 1}}
            wrong = await outcome_of(engine, call({}, call_id="c2", name="look"), U)
            assert isinstance(wrong, Executed)
            assert wrong.status == "error"
