"""``duckduckgo``: the library reads, the engine requests; nothing found is a success, a refusal is not."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import anyio
import pytest

from engine.tools.duckduckgo import DuckDuckGo
from tests.engine.api.raw_server import RawServer, answer, raw_server
from tests.engine.tools.outside import CallOf, calling, error_of, recorded

__all__ = ()

pytestmark = pytest.mark.anyio


def at(server: RawServer) -> dict[str, Any]:
    """Return the settings of a row that searches at the test's server."""
    return {"base_url": server.origin, "html_base_url": f"{server.origin}/plain"}


async def test_the_library_reads_the_pages_that_the_engine_requests() -> None:
    with raw_server() as server:
        async with calling(DuckDuckGo, **at(server)) as call:
            server.answers = [recorded("duckduckgo_web.html")]
            found = await call("ddg_web_search", query="any  io&kl=de-de", timelimit="w", region="us-en")
            assert found["results"] == [
                {
                    "title": "AnyIO & friends",
                    "url": "https://anyio.example/docs?a=1&b=100%25",
                    "snippet": "AnyIO is on top of asyncio or trio.",
                    "published": None,
                    "source": "anyio.example",
                },
                {
                    "title": "Other",
                    "url": "https://other.example/p",
                    "snippet": "Something else.",
                    "published": None,
                    "source": "other.example",
                },
            ]
            assert (found["status_code"], found["provider"]) == (200, "duckduckgo")
            sent = server.last
            assert (sent.method, sent.path, sent.query) == ("POST", "/plain/html/", "")
            assert parse_qs(sent.body.decode()) == {"q": ["any io&kl=de-de"], "l": ["us-en"], "df": ["w"]}
            assert sent.header("user-agent") == "calljournal/0.1"


async def test_images_and_news_come_with_a_token_that_a_page_hands_out() -> None:
    with raw_server() as server:
        async with calling(DuckDuckGo, **at(server)) as call:
            server.answers = [recorded("duckduckgo_token.html"), recorded("duckduckgo_images.json")]
            images = await call("ddg_image_search", query="harbour", max_results=50)
            assert images["results"] == [
                {
                    "title": "Harbour one",
                    "url": "https://photos.example/harbour",
                    "snippet": "",
                    "published": None,
                    "source": "photos.example",
                    "image": "https://photos.example/harbour%20one.jpg",
                    "thumbnail": "https://tse.example/th?id=1",
                    "width": 1600,
                    "height": 1067,
                }
            ]
            assert [(each.method, each.path) for each in server.received] == [("GET", "/"), ("GET", "/i.js")]
            asked = parse_qs(server.last.query)
            assert (asked["vqd"], asked["q"], asked["p"]) == (["4-306852345678901234567890"], ["harbour"], ["1"])

        async with calling(DuckDuckGo, **at(server)) as call:
            server.answers = [recorded("duckduckgo_token.html"), recorded("duckduckgo_news.json")]
            news = await call("ddg_news_search", query="port", timelimit="d")
            assert news["results"] == [
                {
                    "title": "Port opens",
                    "url": "https://news.example/port",
                    "snippet": "The port opened.",
                    "published": "2025-10-01T08:00:00+00:00",
                    "source": "Harbour News",
                }
            ]


async def test_nothing_found_is_a_success_and_a_page_for_robots_is_not() -> None:
    cases: list[tuple[str, list[bytes], str | None]] = [
        ("ddg_web_search", [recorded("duckduckgo_nothing.html")], None),
        ("ddg_image_search", [recorded("duckduckgo_token.html"), answer(b'{"results":[]}')], None),
        ("ddg_news_search", [recorded("duckduckgo_token.html"), answer(b"{}")], None),
        ("ddg_web_search", [recorded("duckduckgo_challenge.html", 202)], "takes the search for a robot's"),
        ("ddg_web_search", [recorded("duckduckgo_challenge.html")], "takes the search for a robot's"),
        ("ddg_image_search", [recorded("duckduckgo_challenge.html")], "takes the search for a robot's"),
        ("ddg_news_search", [recorded("duckduckgo_token.html"), answer(b"", 403)], "takes the search for a robot's"),
        ("ddg_web_search", [answer(b"<html>new design", 200, "text/html")], "a page that is none of results"),
        ("ddg_web_search", [answer(b"", 200, "text/html")], "a page that is none of results"),
        ("ddg_image_search", [recorded("duckduckgo_token.html"), answer(b"<html>")], "cannot be read"),
        ("ddg_news_search", [recorded("duckduckgo_token.html"), answer(b'{"results":["x"]}')], "cannot be read"),
        ("ddg_news_search", [recorded("duckduckgo_token.html"), answer(b'{"results":5}')], "cannot be read"),
        ("ddg_web_search", [answer(b"secret page", 500)], "DuckDuckGo responded with HTTP status 500."),
    ]
    with raw_server() as server:
        for place, (action, answers, said) in enumerate(cases):
            server.answers = [*answers]
            # Each with a memory, a pace and a breaker of its own.
            async with calling(DuckDuckGo, **at(server)) as call:
                result = await call(action, query=f"q{place}")
            if said is None:
                assert (result["results"], result["message"]) == ([], "No results found.")
            else:
                error = error_of(result)
                assert said in error["message"], (place, error)
                assert error["results"] == []
                assert "secret page" not in error["message"]


async def test_what_cannot_be_searched_for_is_said_and_not_sent() -> None:
    with raw_server() as server:
        async with calling(DuckDuckGo, **at(server)) as call:
            for arguments, said in (
                ({"query": "x" * 501}, "The query has 501 characters and 1 words; DuckDuckGo takes 500 characters."),
                ({"query": "x", "max_results": -1}, '"max_results" must be a whole number from 1 to 20.'),
                ({"query": "x", "max_results": "five"}, '"max_results" must be a whole number from 1 to 20.'),
                ({"query": "x", "max_results": 21}, '"max_results" must be a whole number from 1 to 20.'),
                ({}, '"query" must be text'),
            ):
                assert said in error_of(await call("ddg_web_search", **arguments))["message"]
            assert "Unknown action" in error_of(await call("ddg_video_search", query="x"))["message"]
        async with calling(DuckDuckGo, timeout=0, **at(server)) as call:
            assert '"timeout"' in error_of(await call("ddg_web_search", query="x"))["message"]
        assert server.received == []


async def test_its_requests_are_under_the_engines_policy() -> None:
    with raw_server() as inward:
        for address in ("http://10.0.0.1", "http://localhost", f"http://[::1]:{inward.port}"):
            for action in ("ddg_web_search", "ddg_image_search"):
                async with calling(DuckDuckGo, base_url=address, html_base_url=address) as call:
                    assert "cannot be reached or read" in error_of(await call(action, query="x"))["message"]
        with raw_server() as server:
            server.answers = [answer(b"", 302, Location="http://10.0.0.1/")]
            async with calling(DuckDuckGo, **at(server)) as call:
                assert "cannot be reached or read" in error_of(await call("ddg_web_search", query="x"))["message"]
        assert inward.received == []


async def test_a_search_ends_with_its_call() -> None:
    with raw_server() as server:
        server.answers = [b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n<html>"]
        server.holds = True
        async with calling(DuckDuckGo, **at(server)) as call:
            with anyio.fail_after(5):
                error = error_of(await call("ddg_web_search", query="x", seconds=0.3))
            assert "longer than" in error["message"]
        async with calling(DuckDuckGo, **at(server)) as call:
            await _cancelled(call, server)


async def _cancelled(call: CallOf, server: RawServer) -> None:
    before = len(server.received)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:

            async def search() -> None:
                await call("ddg_web_search", query="y", seconds=60)

            tasks.start_soon(search)
            while len(server.received) == before:
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()


async def test_the_page_and_safe_search_are_passed_on() -> None:
    with raw_server() as server:
        server.answers = [recorded("duckduckgo_web.html")]
        for level, asked in (("strict", ["1"]), ("off", ["-2"]), ("moderate", None)):
            async with calling(DuckDuckGo, safesearch=level, **at(server)) as call:
                await call("ddg_web_search", query="x")
                assert parse_qs(server.last.body.decode()).get("kp") == asked


async def test_a_preview_shows_the_requests() -> None:
    async with calling(DuckDuckGo) as call:
        web = call.preview("ddg_web_search", query="a&b")
        assert web.startswith("POST /html/ HTTP/1.1\nHost: html.duckduckgo.com\n")
        assert "\n\nq=a%26b&b=&l=wt-wt\n" in web
        images = call.preview("ddg_image_search", query="a")
        assert "GET /?q=a HTTP/1.1\nHost: duckduckgo.com\n" in images
        assert "GET /i.js?o=json&q=a&l=wt-wt&vqd=" in images
