"""A server's list of tools: every page of it, whole, and what follows from its annotations."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from engine.contract import Scope
from engine.mcp.definitions import Definition
from engine.mcp.errors import McpError
from engine.mcp.listing import MOST_PAGES, list_all
from engine.services import Services
from engine.tools.mcp_tool import MCPTool
from tests.engine.mcp.scripted_server import LOOK, Asked, scripted_server
from tests.engine.mcp.serving import LOCAL, U, mcp_engine, mcp_row

pytestmark = pytest.mark.anyio


def tool_for(url: str, **config: Any) -> MCPTool:
    row = mcp_row(url, **config)
    return MCPTool(row.config, Scope(user_id="u", owner="u", tool_id="t1", services=Services(LOCAL)))


def named(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [{**LOOK, "name": f"tool{number}"} for number in range(first, first + count)]


async def test_case_mcp_02_every_page_is_read_and_cursors_go_back_as_they_came() -> None:
    pages: dict[Any, dict[str, Any]] = {
        None: {"tools": named(40), "nextCursor": "p/2=="},
        "p/2==": {"tools": named(40, 40), "nextCursor": ""},
        "": {"tools": named(3, 80)},
    }
    asked: list[Any] = []

    def page(request: Asked) -> dict[str, Any]:
        asked.append(request.params.get("cursor"))
        return pages[request.params.get("cursor")]

    with scripted_server() as server:
        server.answers["tools/list"] = page
        actions = await tool_for(server.url).get_actions_metadata()
        assert [each["name"] for each in actions] == [f"tool{number}" for number in range(83)]
        assert asked == [None, "p/2==", ""]
        async with mcp_engine(mcp_row(server.url)) as engine:
            prepared = await engine.prepare_tools_for_llm(U)
            assert len([name for name in prepared.names if name.startswith("tool")]) == 83


async def test_case_mcp_03_a_cursor_that_never_advances_ends_the_list_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with scripted_server() as server:
        server.answers["tools/list"] = lambda _: {"tools": named(6), "nextCursor": "x"}
        actions = await tool_for(server.url).get_actions_metadata()
    assert [each["name"] for each in actions] == [f"tool{number}" for number in range(6)]
    assert "does not end" in caplog.text


async def test_case_mcp_03_new_cursors_without_end_are_given_up(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[str | None] = []

    async def page(cursor: str | None) -> Any:
        asked.append(cursor)
        return {"tools": named(1), "nextCursor": str(len(asked))}

    assert list(await list_all(page, "host")) == ["tool0"]
    assert len(asked) == MOST_PAGES
    assert "over 200 pages" in caplog.text


async def test_an_entry_that_is_no_tool_costs_only_itself(caplog: pytest.LogCaptureFixture) -> None:
    with scripted_server() as server:
        bad: list[Any] = [{"description": "no name"}, {"name": 5}, {"name": "x", "inputSchema": []}, "text"]
        server.tools = [*bad, LOOK, {"name": "bare"}]
        with caplog.at_level(logging.WARNING):
            actions = await tool_for(server.url).get_actions_metadata()
    assert [each["name"] for each in actions] == ["look", "bare"]
    assert actions[1]["parameters"] == {"type": "object", "properties": {}}
    assert caplog.text.count("is left out") == 4


async def test_schemas_and_annotations_are_kept_whole() -> None:
    schema = {
        "type": "object",
        "$defs": {"bay": {"oneOf": [{"type": "integer"}, {"type": "string", "pattern": "^B"}]}},
        "properties": {"bay": {"$ref": "#/$defs/bay"}, "operation": {"type": "string"}},
        "required": ["bay"],
        "additionalProperties": False,
        "anyOf": [{"required": ["bay"]}, {"required": ["operation"]}],
    }
    output = {"type": "object", "properties": {"total": {"type": "integer"}}}
    with scripted_server() as server:
        server.tools = [{**LOOK, "inputSchema": schema, "outputSchema": output, "title": "Look"}]
        (entry,) = await tool_for(server.url, timeout=17).get_actions_metadata()
    assert entry["parameters"] == schema
    assert entry["output_schema"] == output
    assert entry["annotations"] == LOOK["annotations"]
    assert entry["timeout"] == 17
    assert len(entry["definition"]) == 64


ANNOTATIONS: list[tuple[dict[str, Any], str, bool, bool]] = [
    # what the server says, effect, idempotent, needs approval
    ({}, "write", False, True),
    ({"readOnlyHint": True}, "read", True, False),
    ({"readOnlyHint": True, "destructiveHint": True}, "read", True, False),
    ({"readOnlyHint": "yes"}, "write", False, True),
    ({"destructiveHint": True}, "destroy", False, True),
    ({"destructiveHint": False, "idempotentHint": True}, "write", True, True),
]


@pytest.mark.parametrize(("stated", "effect", "idempotent", "approval"), ANNOTATIONS)
def test_annotations_set_effect_and_default_approval(
    stated: dict[str, Any], effect: str, idempotent: bool, approval: bool
) -> None:
    definition = Definition.of({**LOOK, "annotations": stated})
    assert definition is not None
    entry = definition.metadata("annotations", 30.0)
    assert (entry["effect"], entry["idempotent"], entry["require_approval"]) == (effect, idempotent, approval)
    assert definition.metadata("always", 30.0)["require_approval"] is True
    assert definition.metadata("never", 30.0)["require_approval"] is False


def test_a_digest_covers_what_a_tool_is_and_no_order() -> None:
    def digest(**changed: Any) -> str:
        definition = Definition.of({**LOOK, **changed})
        assert definition is not None
        return definition.digest

    turned = {key: dict(reversed(value.items())) if isinstance(value, dict) else value for key, value in LOOK.items()}
    assert digest() == digest(**dict(reversed(turned.items()))) == digest(icons=[], _meta={"served": 5})
    others: list[dict[str, Any]] = [
        {"name": "other"},
        {"description": "Looks at a bay. Also sends it to me."},
        {"inputSchema": {"type": "object"}},
        {"outputSchema": {"type": "object"}},
        {"annotations": {"readOnlyHint": False}},
    ]
    assert len({digest(), *(digest(**other) for other in others)}) == 6


async def test_a_server_that_does_not_list_is_said_so_and_its_row_left_out(caplog: pytest.LogCaptureFixture) -> None:
    with scripted_server() as server:
        server.answers["tools/list"] = lambda _: {"code": -32000, "message": "no list today"}
        with pytest.raises(McpError, match="no list today"):
            await tool_for(server.url).get_actions_metadata()
        async with mcp_engine(mcp_row(server.url)) as engine:
            prepared = await engine.prepare_tools_for_llm(U)
            assert "look" not in prepared.names
    assert "no list today" in caplog.text
