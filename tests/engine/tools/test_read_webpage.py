"""``read_webpage``: fenced text, or an error result that says what was wrong."""

from __future__ import annotations

import re
from typing import Any

import pytest

from engine.contract import Scope, ToolResult
from engine.services import Services
from engine.tools.read_webpage import ReadWebpage
from tests.engine.net.names import policy
from tests.engine.web_server import Page, raw, redirect, text, web_server

pytestmark = pytest.mark.anyio


async def read(url: Any, *allow: str, action: str = "read_webpage", **limits: int) -> Any:
    services = Services(policy(*allow, **limits))
    tool = ReadWebpage({}, Scope(user_id=None, owner=None, tool_id="t", services=services))
    try:
        return await tool.execute_action(action, url=url)
    finally:
        await services.aclose()


async def read_page(page: Page) -> Any:
    """Read a page of a server on this machine."""
    with web_server({"/p": page}) as server:
        return await read(f"http://127.0.0.1:{server.port}/p", "127.0.0.1")


def failure(result: Any) -> str:
    assert isinstance(result, ToolResult)
    assert result.status == "error"
    return str(result.data)


async def test_a_page_comes_fenced_with_its_title_and_final_address() -> None:
    pages = {"/a": redirect("/b"), "/b": text("<title>T</title><h1>H</h1><p>Body", "text/html")}
    with web_server(pages) as server:
        result = await read(f"http://127.0.0.1:{server.port}/a", "127.0.0.1")
    match = re.fullmatch(
        r"URL: (\S+)\nWhat stands between the marks (\w{16}) is .*\n<<<(\w{16})\n(.*)\n(\w{16})>>>", result, re.DOTALL
    )
    assert match
    assert match[1] == f"http://127.0.0.1:{server.port}/b"
    assert match[2] == match[3] == match[5]
    assert match[4] == "Title: T\n\n# H\n\nBody"


async def test_the_fence_is_new_every_time_so_that_no_page_can_close_it() -> None:
    first, second = [await read_page(text("same")) for _ in range(2)]
    assert first.rpartition("\n")[2] != second.rpartition("\n")[2]


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", '{"a_b": "x*y <z>"}'),
        ("text/plain; charset=utf-8", "a < b\n  <not html>"),
        ("application/rss+xml", "<rss><title>x</title></rss>"),
    ],
)
async def test_what_is_no_html_stays_as_it_is(content_type: str, body: str) -> None:
    assert f"\n{body}\n" in await read_page(text(body, content_type))


async def test_a_page_without_a_type_is_read_by_its_content() -> None:
    assert "\nhello\n" in await read_page(text("<p>hello", ""))


async def test_a_page_in_utf_16_is_text() -> None:
    assert "\nhellö\n" in await read_page(raw("hellö".encode("utf-16"), "text/plain"))
    assert "\nhellö\n" in await read_page(raw("hellö".encode("utf-16-le"), "text/plain; charset=utf-16le"))


async def test_an_empty_page_says_so() -> None:
    assert "(the page has no text)" in await read_page(text("", "text/html"))


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (text("x", "image/png"), "Error: URL returned content type 'image/png'"),
        (raw(b"%PDF-1.7 x", "text/html; charset=utf-8"), "Error: URL returned binary content"),
        (raw(b"\x1f\x8bxx", "text/plain"), "Error: URL returned binary content"),
        (raw(b"ab\0cd", "text/plain"), "Error: URL returned binary content"),
        (raw(b"x" * (10 * 1024 * 1024 + 1)), "Error: The page is too large to read (over 10 MB)."),
        (redirect(None), "redirect but no target location"),
        (redirect("http://10.0.0.1/"), "Error: URL validation failed - "),
    ],
)
async def test_what_cannot_be_read_is_an_error_result(page: Page, said: str) -> None:
    assert said in failure(await read_page(page))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "Error: URL parameter is missing."),
        (None, "Error: URL parameter is missing."),
        ("http://127.0.0.1:1/", "Error: URL validation failed - "),
        ("ftp://example.com/", "Error: URL validation failed - only http and https"),
        ("127.0.0.1:8080/x", "Error: URL validation failed - "),
        ("http://nothing.invalid/?k=1", "Error fetching URL http://nothing.invalid/: there is no host nothing.invalid"),
    ],
)
async def test_what_is_no_public_page_is_an_error_result(url: Any, said: str) -> None:
    assert failure(await read(url)).startswith(said)


async def test_a_status_of_error_is_an_error_result() -> None:
    with web_server({}) as server:
        url = f"http://127.0.0.1:{server.port}/gone"
        assert failure(await read(url, "127.0.0.1")) == f"Error fetching URL {url}: HTTP status 404"


async def test_an_operator_may_allow_less() -> None:
    with web_server({"/p": raw(b"x" * 1_048_577)}) as server:
        result = await read(f"http://127.0.0.1:{server.port}/p", "127.0.0.1", largest=1_048_576)
    assert failure(result) == "Error: The page is too large to read (over 1 MB)."


async def test_a_rows_config_opens_nothing() -> None:
    tool = ReadWebpage({"allow_hosts": ["127.0.0.1"]}, Scope(user_id=None, owner=None, tool_id="t"))
    assert "URL validation failed" in failure(await tool.execute_action("read_webpage", url="http://127.0.0.1/"))


async def test_an_unknown_action_is_an_error_result() -> None:
    assert "Unknown action 'fetch'" in failure(await read("http://example.com/", action="fetch"))


def test_what_it_says_of_itself() -> None:
    tool = ReadWebpage({}, Scope(user_id=None, owner=None, tool_id="t"))
    assert [action["name"] for action in tool.get_actions_metadata()] == ["read_webpage"]
    assert tool.get_config_requirements() == {}
    assert (tool.default_on, tool.effect, tool.idempotent, tool.timeout) == (True, "read", True, 30.0)
