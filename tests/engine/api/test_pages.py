"""Pages: read one after another within one call, and nowhere else than the action is configured for."""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest

from engine import Settings
from engine.actions import resolve_actions
from engine.api.dry_run import dry_run
from engine.api.links import linked
from engine.api.pages import Pages, wanted_pages
from engine.api.row_config import problems_of
from engine.arguments import ArgumentChecker
from engine.net.allow_list import AllowList
from engine.net.policy import NetPolicy
from engine.net.reply import Reply
from engine.tools.api_tool import ApiTool
from events import Executed
from events.errors import Refused
from tests.engine.api.calls import LOCAL, api_row, result_of_call
from tests.engine.api.paging import SECRET, body, read
from tests.engine.api.raw_server import RawServer, answer, raw_server
from tests.engine.staging import call, outcome_of, staged_engine

__all__ = ()

pytestmark = pytest.mark.anyio


Way: TypeAlias = tuple[dict[str, Any], list[bytes], list[str], dict[str, Any]]
"""An operation's pages, what the server answers, what is requested, and the call's arguments."""


def said_ways(server: RawServer) -> list[Way]:
    """Return those where a response says what is next."""
    return [
        (
            {"by": "link"},
            [
                body([1], Link=f'<{server.origin}/v1/items?page=2&q=a%20b>; rel="next", </v1/items>; rel=first'),
                body([2], Link="<?page=3>; rel=next"),
                body([3]),
            ],
            ["?q=a%20b", "?page=2&q=a%20b", "?page=3"],
            {"q": "a b"},
        ),
        (
            {"by": "link", "next": "links.next", "items": "data"},
            [body({"data": [1], "links": {"next": "/v1/items?c=x"}}), body({"data": [2, 3], "links": {}})],
            ["", "?c=x"],
            {},
        ),
        (
            {"by": "cursor", "parameter": "cursor", "next": "meta.next", "items": "data"},
            [
                body({"data": [1], "meta": {"next": "a/b="}}),
                body({"data": [2], "meta": {"next": 7}}),
                body({"data": [3], "meta": {"next": None}}),
            ],
            ["?q=x", "?q=x&cursor=a%2Fb%3D", "?q=x&cursor=7"],
            {"q": "x"},
        ),
    ]


def counted_ways() -> list[Way]:
    """Return those where a number grows."""
    return [
        (
            {"by": "page", "parameter": "page", "items": "data", "size": 1},
            [body({"data": [1]}), body({"data": [2]}), body({"data": [3]})],
            ["?page=4", "?page=5", "?page=6"],
            {"page": 4},
        ),
        (
            {"by": "page", "parameter": "page", "first": 0},
            [body([1]), body([2, 3]), body([])],
            ["", "?page=1", "?page=2"],
            {},
        ),
        (
            {"by": "offset", "parameter": "offset", "size": 2},
            [body([1, 2]), body([3])],
            ["?q=x", "?q=x&offset=2"],
            {"q": "x"},
        ),
    ]


async def test_each_way_from_page_to_page() -> None:
    with raw_server() as server:
        for pages, answers, targets, arguments in (*said_ways(server), *counted_ways()):
            server.answers = answers
            result = await read(server, pages, arguments=arguments)
            assert [received.target for received in server.received] == [f"/v1/items{target}" for target in targets]
            assert {received.header("authorization") for received in server.received} == {f"Bearer {SECRET}"}
            assert (result.status, result.data["status_code"], result.data["data"]) == ("completed", 200, [1, 2, 3])
            assert result.data["pages"] == len(targets)
            more = {"next": {"page": 7}} if pages.get("size") == 1 else {}
            assert {key: item for key, item in result.data.items() if key == "next"} == more


async def test_one_page_is_what_it_was_with_the_way_on() -> None:
    cursor = {"by": "cursor", "parameter": "after", "next": "next", "items": "data"}
    renamed = {"wire": {"query_params": {"cursor": {"name": "after"}}}}
    with raw_server() as server:
        server.answers = [body({"data": [1], "next": "c2"})]
        for wanted in (None, 1):
            result = await read(server, cursor, wanted, **renamed)
            assert result.data == {
                "status_code": 200,
                "data": {"data": [1], "next": "c2"},
                "message": "API call successful. "
                "There is more: call it again with the same arguments and those in next.",
                "next": {"cursor": "c2"},
            }
            assert len(server.received) == 1
        server.answers = [body({"data": [2]})]
        result = await read(server, cursor, 2, arguments=result.data["next"], **renamed)
        assert server.last.target == "/v1/items?after=c2"
        assert result.data == {
            "status_code": 200,
            "data": [2],
            "message": "API call successful. 1 page was read.",
            "pages": 1,
        }
        server.answers = [body([1], Link="<?page=2&q=9&q=x>; rel=next")]
        result = await read(server, {"by": "link"}, None)
        assert result.data["next"] == {"page": 2, "q": "x"}


async def test_what_a_projection_leaves_is_the_page() -> None:
    pages = {"by": "cursor", "parameter": "cursor", "next": "next", "items": "ids"}
    with raw_server() as server:
        server.answers = [body({"data": [{"id": 1}], "next": "a"}), body({"data": [{"id": 2}, {"id": 3}]})]
        result = await read(server, pages, project="{ids: data[].id}")
        assert result.data["data"] == [1, 2, 3]


async def test_a_link_that_leads_elsewhere_is_not_followed() -> None:
    with raw_server() as server, raw_server() as other:
        for target in (
            f"{other.origin}/v1/items?page=2",
            f"//127.0.0.1:{other.port}/v1/items",
            server.origin.replace("http:", "https:") + "/v1/items",
            f"http://me@127.0.0.1:{server.port}/v1/items",
            f"http://localhost:{server.port}/v1/items",
            "/v2/items",
            "/v1/itemsx",
            "/",
            "../v1/items/../../admin",
            "/v1/items/%2e%2e/admin",
            "/v1/items/..%2fadmin",
            "/v1/items/.%2E%5Cadmin",
            "/v1/items/..;/admin",
            "/v1/items/%252e%252e/admin",
            "/v1/items\\x",
            "/v1/items/{key}",
            "/v1/items?a b",
            "file:///v1/items",
        ):
            server.answers = [body([1], Link=f'<{target}>; rel="next"')]
            result = await read(server, {"by": "link"})
            assert (len(server.received), other.received, result.data["data"]) == (1, [], [1]), target
            assert "next" not in result.data
            assert result.data["message"].endswith(
                "The link to the next page was not followed: it leads out of what the action is configured for."
            )
        server.answers = [body([1], Link="</repositories/7/items?page=2>; rel=next"), body([2])]
        assert (await read(server, {"by": "link", "under": "/repositories"})).data["data"] == [1, 2]


async def test_credentials_of_a_query_or_a_path_come_once() -> None:
    with raw_server() as server:
        in_query = [{"in": "query", "name": "api_key", "secret": "key"}]
        link = f"<{server.origin}/v1/items?api_key={SECRET}&page=2>; rel=next"
        server.answers = [body([SECRET], Link=link), body([f"x{SECRET}"])]
        result = await read(server, {"by": "link"}, security=in_query)
        assert [received.query for received in server.received] == [f"api_key={SECRET}", f"page=2&api_key={SECRET}"]
        assert result.data["data"] == ["***", "x***"]
        in_path: dict[str, Any] = {
            "url": f"{server.origin}/bot{{t}}/items",
            "security": [{"in": "path", "name": "t", "secret": "key"}],
        }
        server.answers = [body([1], Link=f"</bot{SECRET}/items?page=2>; rel=next"), body([2])]
        result = await read(server, {"by": "link"}, **in_path)
        assert [received.target for received in server.received] == [
            f"/bot{SECRET}/items",
            f"/bot{SECRET}/items?page=2",
        ]
        server.answers = [body([1], Link="</bot/items?page=2>; rel=next")]
        assert "was not followed" in (await read(server, {"by": "link"}, **in_path)).data["message"]
        assert SECRET not in repr(result)


async def test_a_page_that_comes_again_ends_the_reading() -> None:
    cursor = {"by": "cursor", "parameter": "cursor", "next": "next", "items": "data"}
    with raw_server() as server:
        server.answers = [body({"data": [1], "next": "a"})]
        result = await read(server, cursor, 9)
        assert (result.data["data"], result.data["pages"], "next" in result.data) == ([1, 1], 2, False)
        assert "one that was read already" in result.data["message"]
        server.answers = [body([1], Link="</v1/items>; rel=next")]
        assert (await read(server, {"by": "link"})).data["pages"] == 1


async def test_what_goes_wrong_later_leaves_what_was_read() -> None:
    cursor = {"by": "cursor", "parameter": "cursor", "next": "next", "items": "data"}
    first = body({"data": [1], "next": "b"})
    small = NetPolicy(allow=AllowList(("127.0.0.1",)), largest=60)
    cases: list[tuple[bytes, dict[str, Any], str]] = [
        (answer(b"{}", 500), {}, "HTTP status 500."),
        (answer(b"", 302, Location="/x"), {}, "HTTP status 302."),
        (answer(b"<html>"), {}, "it has no list of items."),
        (body({"data": {"a": 1}}), {}, "it has no list of items."),
        (body({"data": ["x" * 60]}), {"policy": small}, "the pages would be larger than one response may be."),
        (b"nonsense", {}, "the response broke off"),
        (
            body({}),
            {"rate": {"calls": 1, "seconds": 3600}},
            "the action's rate has no turn for it; try again in 3600 s.",
        ),
    ]
    with raw_server() as server:
        for second, more, said in cases:
            server.answers = [first, second]
            result = await read(server, cursor, **more)
            assert (result.status, result.data["status_code"], result.data["data"]) == ("completed", 200, [1]), said
            assert "1 page was read. Page 2 was not read: " in result.data["message"]
            assert said in result.data["message"]
            assert (result.data["pages"], result.data["next"]) == (1, {"cursor": "b"})
        server.answers = [first, body({"data": [2], "next": [1]})]
        result = await read(server, cursor)
        assert (result.data["data"], "next" in result.data) == ([1, 2], False)
        assert "What stands where the next cursor should be is none" in result.data["message"]


async def test_a_first_page_that_is_none_is_a_result_like_any() -> None:
    cursor = {"by": "cursor", "parameter": "cursor", "next": "next", "items": "data"}
    with raw_server() as server:
        server.answers = [answer(b"{}", 404)]
        result = await read(server, cursor)
        assert (result.status, result.data["message"], "pages" in result.data) == ("error", "HTTP Error 404", False)
        server.answers = [body({"data": 1, "next": "a"})]
        result = await read(server, cursor)
        assert (result.data["data"], len(server.received)) == ({"data": 1, "next": "a"}, 1)
        assert "It has no list of items, so no further page was read." in result.data["message"]


async def test_one_deadline_holds_for_all_pages() -> None:
    with raw_server() as server:
        server.answers = [body([1], Link="<?page=2>; rel=next"), b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n["]
        server.holds = True
        action = {"url": server.origin, "pages": {"by": "link"}}
        result = await result_of_call(action, {"max_pages": 2}, seconds=1.0)
        assert (result.status, result.data["data"]) == ("completed", [1])
        assert "Page 2 was not read: it took longer than" in result.data["message"]


async def test_pages_are_read_and_recorded_as_one_call(sqlite_url: str) -> None:
    with raw_server() as server:
        server.answers = [body([1], Link="<?page=2>; rel=next"), body([2])]
        row = api_row(act={"url": server.origin, "pages": {"by": "link"}})
        async with staged_engine(sqlite_url, ApiTool, rows=[row], settings=Settings(net=LOCAL)) as engine:
            done = await outcome_of(engine, call({"max_pages": 2}, name="act"))
            assert isinstance(done, Executed)
            assert (done.result["data"], done.result["pages"]) == ([1, 2], 2)
            assert done.resolved["query_params"] == {"max_pages": 2}


def test_the_model_may_say_how_many_pages() -> None:
    action: dict[str, Any] = {"url": "https://api.example/x", "pages": {"by": "link", "most": 5}}
    (known,) = resolve_actions(api_row(act=action), ApiTool, None)
    described = known.shown["properties"]["max_pages"]
    assert (described["type"], described["minimum"], described["maximum"]) == ("integer", 1, 5)
    checker = ArgumentChecker()
    assert checker.validate(known, {"max_pages": 5}) is None
    assert checker.validate(known, {}) is None
    for wrong in (0, 6, "2", 1.5):
        assert "max_pages" in (checker.validate(known, {"max_pages": wrong}) or "")
        with pytest.raises(Refused):
            wanted_pages(Pages(by="link", most=5), {"max_pages": wrong})
    assert [wanted_pages(Pages(by="link"), {"max_pages": each}) for each in (None, 2, 2.0)] == [1, 2, 2]
    for most in (True, 0, -5, "x", None):
        (known,) = resolve_actions(api_row(act={**action, "pages": {"by": "link", "most": most}}), ApiTool, None)
        assert known.shown["properties"]["max_pages"]["maximum"] == 1
    for group in ("headers", "body"):
        own = {group: {"properties": {"max_pages": {"type": "string"}}}}
        (known,) = resolve_actions(api_row(act={**action, **own}), ApiTool, None)
        assert known.shown["properties"] == {"max_pages": {"type": "string"}}
    pinned = {"properties": {"max_pages": {"type": "integer", "filled_by_llm": False, "value": 3}}}
    (known,) = resolve_actions(api_row(act={**action, "query_params": pinned}), ApiTool, None)
    assert (known.shown["properties"], known.pinned) == ({}, {"max_pages": 3})
    assert dry_run(api_row(act=action), "act", {"max_pages": 2}).url == "https://api.example/x"
    (plain,) = resolve_actions(api_row(act={"url": "https://api.example/x"}), ApiTool, None)
    assert plain.shown["properties"] == {}


def test_pages_that_make_no_sense_are_not_stored() -> None:
    for pages, more, reason in (
        ({"by": "sort"}, {}, "pages.by"),
        ({"by": "link", "most": 101}, {}, "pages.most"),
        ({"by": "link", "most": 0}, {}, "pages.most"),
        ({"by": "link", "nxt": "x"}, {}, "nxt"),
        ({"by": "cursor", "next": "x"}, {}, "which parameter"),
        ({"by": "cursor", "parameter": "c"}, {}, "where it stands"),
        ({"by": "offset"}, {}, "which parameter"),
        ({"by": "link", "items": "a..b"}, {}, "JMESPath"),
        ({"by": "link", "under": "v1"}, {}, "under"),
        ({"by": "link"}, {"method": "POST"}, "only what GET reads"),
        (
            {"by": "page", "parameter": "key"},
            {"security": [{"in": "query", "name": "key", "secret": "k"}]},
            "that is the tool's credential",
        ),
    ):
        [problem] = problems_of({"actions": {"act": {"url": "https://api.example/", "pages": pages, **more}}})
        assert reason in problem


def test_links_are_read_as_their_standard_says() -> None:
    for header, target in (
        ('<a>; rel="next"', "a"),
        ("<a>;rel=next", "a"),
        ('<a>; rel="prev", <b>; rel="NEXT last"', "b"),
        ('<a>; title="x; rel=next"; rel=prev, <b?x=1,2>; title="<c>; \\"rel\\"=next, "; rel=next', "b?x=1,2"),
        ("<a>; rel=prev; rel=next", None),
        ('<a>; rel=next; anchor="#x"', None),
        ("<a>; REL = next", "a"),
        ("<a>", None),
        ("a; rel=next", None),
        ("<a; rel=next", None),
        (", <a>; rel=next", "a"),
        ("", None),
        ("<" * 100_000, None),
        ("<a>" + "; a" * 50_000, None),
        ("\xa0" * 60_000, None),
        ("<a>; b=c" + "\xa0" * 60_000, None),
        (" ," * 30_000 + "x", None),
    ):
        headers = (("Link", header),)
        reply = Reply(url="", status=200, headers=headers, content_type="", charset=None, body=b"")
        assert linked(reply, "next") == target, header[:50]
