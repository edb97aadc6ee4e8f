"""A server's resources and prompts, as actions where a row wants them."""

from __future__ import annotations

from typing import Any

import pytest
from fastmcp import FastMCP

from engine import Engine
from events import Executed
from tests.engine.mcp.serving import U, mcp_engine, mcp_row, real_server
from tests.engine.staging import call, outcome_of

pytestmark = pytest.mark.anyio


def yard(*, shadowed: bool) -> FastMCP[Any]:
    server: FastMCP[Any] = FastMCP("yard")

    @server.resource("yard://bays", mime_type="text/plain")
    def bays() -> str:
        return "B1 B2"

    @server.resource("yard://plan", mime_type="image/png")
    def plan() -> bytes:
        return b"\x89PNG"

    @server.prompt
    def greet(name: str) -> str:
        return f"Greet {name}."

    def mcp_get_prompt() -> str:
        return "the tool"

    if shadowed:
        server.tool(mcp_get_prompt)
    return server


async def done(engine: Engine, action: str, /, **arguments: Any) -> Any:
    outcome = await outcome_of(engine, call(arguments, call_id=f"{action} {arguments}", name=action), U)
    assert isinstance(outcome, Executed), outcome
    return outcome.result


async def test_resources_and_prompts_are_listed_and_read() -> None:
    with real_server(yard(shadowed=False)) as url:
        async with mcp_engine(mcp_row(url, resources=True)) as engine:
            listed = await done(engine, "mcp_list_resources")
            assert {each["uri"] for each in listed["resources"]} == {"yard://bays", "yard://plan"}
            text = await done(engine, "mcp_read_resource", uri="yard://bays")
            bays = {"type": "resource", "uri": "yard://bays", "mime_type": "text/plain", "text": "B1 B2"}
            assert text["content"] == [bays]
            image = await done(engine, "mcp_read_resource", uri="yard://plan")
            assert image["content"][0]["bytes"] == 4
            assert "error" in await done(engine, "mcp_read_resource", uri="yard://none")
            prompts = await done(engine, "mcp_list_prompts")
            assert [(each["name"], each["arguments"][0]["name"]) for each in prompts["prompts"]] == [("greet", "name")]
            prompt = await done(engine, "mcp_get_prompt", name="greet", arguments={"name": "Ann"})
            assert prompt == {"messages": [{"role": "user", "content": {"type": "text", "text": "Greet Ann."}}]}


async def test_a_server_s_own_tool_of_the_name_goes_before_and_nothing_is_added_unasked() -> None:
    with real_server(yard(shadowed=True)) as url:
        async with mcp_engine(mcp_row(url, resources=True)) as engine:
            assert (await done(engine, "mcp_get_prompt"))["content"][0]["text"] == "the tool"
        async with mcp_engine(mcp_row(url)) as engine:
            names = (await engine.prepare_tools_for_llm(U)).names
            assert "mcp_get_prompt" in names
            assert "mcp_read_resource" not in names
