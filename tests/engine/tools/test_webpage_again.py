"""``read_webpage`` of a page that was read before: the server is asked whether it is still that."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.tools.test_read_webpage import failure, read_often, read_page, within
from tests.engine.web_server import raw, redirect, text, web_server

__all__ = ()

pytestmark = pytest.mark.anyio


def tagged(served: list[tuple[str, str]]) -> Any:
    """A page that is these bodies in turn, each with its ETag; it answers 304 where it is asked about its own."""

    def page(request: Any) -> None:
        body, tag = served.pop(0)
        if tag and request.headers["If-None-Match"] == tag:
            raw(b"", "text/plain", 304, ETag=tag)(request)
        else:
            text(body, ETag=tag)(request)

    return page


async def test_a_page_that_has_not_changed_is_not_sent_again() -> None:
    served = [("one", '"a"'), ("one", '"a"'), ("two", '"b"'), ("three", "no tag"), ("four", '"c"'), ("five", "")]
    with web_server({"/p": tagged(served)}) as server:
        url = f"http://127.0.0.1:{server.port}/p"
        results = await read_often(url, *([{}] * 6), allow=("127.0.0.1",))
        sent = [asked.headers.get("if-none-match") for asked in server.asked]
    assert [within(result)["text"] for result in results] == ["one", "one", "two", "three", "four", "five"]
    assert sent == [None, '"a"', '"a"', '"b"', None, '"c"']


async def test_what_a_redirect_led_to_is_asked_for_anew() -> None:
    with web_server({"/p": redirect("/q"), "/q": text("x", ETag='"a"')}) as server:
        await read_often(f"http://127.0.0.1:{server.port}/p", {}, {}, allow=("127.0.0.1",))
        assert not any("if-none-match" in asked.headers for asked in server.asked)


async def test_an_answer_to_what_was_not_asked_is_an_error() -> None:
    assert "HTTP status 304" in failure(await read_page(raw(b"", "text/plain", 304)))
