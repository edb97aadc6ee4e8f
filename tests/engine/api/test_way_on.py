"""The way from a page to the next, where a server or an owner says something odd of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.api.paging import TEXT, body, read
from tests.engine.api.raw_server import answer, raw_server

__all__ = ()

pytestmark = pytest.mark.anyio

CURSOR = {"by": "cursor", "parameter": "cursor", "next": "next", "items": "data"}


async def test_what_a_call_for_the_next_page_takes_is_what_a_call_may_send() -> None:
    fixed = {"type": "string", "filled_by_llm": False, "value": "2"}
    several = {"type": "array", "items": {"type": "integer"}}
    link = {"by": "link", "next": "next", "items": "data"}
    cases: list[tuple[dict[str, Any], dict[str, Any], Any, dict[str, Any] | None]] = [
        (CURSOR, {}, 7, None),
        (CURSOR, {"cursor": fixed}, 7, None),
        (CURSOR, {"cursor": {"type": "integer"}}, 7, {"cursor": 7}),
        (CURSOR, {"cursor": {"type": ["null", "string"]}}, 7, {"cursor": "7"}),
        (CURSOR, {"cursor": {}}, 7, {"cursor": "7"}),
        (link, {"v": fixed, "n": several, "p": TEXT}, "?v=2&n=1&n=2&p=3", {"n": [1, 2], "p": "3"}),
        (link, {"v": fixed, "p": TEXT}, "?v=3&p=3", None),
        (link, {"p": TEXT}, "?p=3&per_page=9", None),
        (link, {"p": TEXT}, "?p=3&max_pages=9", None),
        (link, {"p": TEXT}, "/v1/items/2?p=3", None),
        (link, {"p": {"type": "boolean"}}, "?p=true", {"p": True}),
        (link, {"p": {"type": "integer"}}, "?p=x", {"p": "x"}),
        (link, {"p": {"type": "number"}}, "?p=NaN", {"p": "NaN"}),
    ]
    with raw_server() as server:
        for pages, properties, said, way in cases:
            server.answers = [body({"data": [1], "next": said})]
            result = await read(server, pages, None, query_params={"properties": properties})
            assert result.data.get("next") == way, said
            assert ("only a larger max_pages" if way is None else "in next.") in result.data["message"]


async def test_a_page_without_content_is_the_last() -> None:
    with raw_server() as server:
        server.answers = [body({"data": [1], "next": "a"}), answer(b"", 204)]
        result = await read(server, CURSOR)
        assert (result.data["data"], result.data["pages"], "next" in result.data) == ([1], 2, False)


async def test_a_cursor_that_no_url_can_hold_is_none() -> None:
    with raw_server() as server:
        for said in (b'"\\ud800"', b"{}", b"true", b'"' + b"x" * 4097 + b'"'):
            server.answers = [answer(b'{"data": [1], "next": %b}' % said)]
            result = await read(server, CURSOR)
            assert (result.data["data"], len(server.received)) == ([1], 1)
            assert "What stands where the next cursor should be is none" in result.data["message"]


async def test_a_jmespath_that_cannot_be_applied_finds_nothing() -> None:
    with raw_server() as server:
        server.answers = [answer(b'{"data": [1e308, 1e308]}')]
        for wrong in ("ceil(sum(data))", "sort_by(data, &a)"):
            result = await read(server, {"by": "link", "items": wrong}, project=wrong)
            assert (result.status, result.data["data"]) == ("completed", {"data": [1e308, 1e308]})
            assert "It could not be projected" in result.data["message"]
