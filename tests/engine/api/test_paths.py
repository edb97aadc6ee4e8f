"""Path parameters stay one segment; what is sent is the very path that was built (CASES API-05)."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.api.operation import Operation
from events.errors import Refused
from tests.engine.api.calls import built, refused, result_of_call
from tests.engine.api.raw_server import raw_server

__all__ = ()

pytestmark = pytest.mark.anyio
TEXT = {"type": "string"}


def path(template: str, **names: dict[str, Any]) -> dict[str, Any]:
    """Return an action with these arguments for its path."""
    return {"url": template, "query_params": {"properties": names}}


async def test_case_api_05_a_path_parameter_stays_one_segment_on_the_wire() -> None:
    with raw_server() as server:
        dock = path(f"{server.origin}/v2/docks/{{dock}}/log", dock=TEXT)
        for value, sent in (
            ("a/b", "a%2Fb"),
            ("a?x=1", "a%3Fx%3D1"),
            ("a#f", "a%23f"),
            ("%2e%2e", "%252e%252e"),
            ("{bay}", "%7Bbay%7D"),
            ("Åse 7", "%C3%85se%207"),
            ("a;b", "a%3Bb"),
            ("../../admin", "..%2F..%2Fadmin"),
            ("..\\..\\admin", "..%5C..%5Cadmin"),
            ("...", "..."),
            ("a.b~c-d_e", "a.b~c-d_e"),
            (7, "7"),
            (True, "true"),
        ):
            await result_of_call(dock, {"dock": value})
            assert server.last.target == f"/v2/docks/{sent}/log"
        both = path(f"{server.origin}/v2/{{dock}}/{{bay}}", dock=TEXT, bay=TEXT)
        await result_of_call(both, {"dock": "{bay}", "bay": "9"})
        assert server.last.target == "/v2/%7Bbay%7D/9"


def test_case_api_05_dots_and_nothing_are_refused() -> None:
    dock = path("https://h.example/v2/docks/{dock}/log", dock=TEXT)
    values: list[Any] = ["..", ".", "", None, [], {}]
    for value in values:
        assert '"dock"' in refused(dock, {"dock": value})
    assert '"dock"' in refused(dock, {})
    # Also where only several values, or a value and what stands beside it, make the segment.
    two = path("https://h.example/v2/{a}{b}", a=TEXT, b=TEXT)
    assert '"a"' in refused(two, {"a": ".", "b": "."})
    assert built(two, {"a": "", "b": "x"}).path == "/v2/x"
    assert '"e"' in refused(path("https://h.example/v2/.{e}", e=TEXT), {"e": "."})
    assert '"e"' in refused(path("https://h.example/v2/%2{e}", e=TEXT), {"e": "e"})


@pytest.mark.parametrize(
    "url",
    [
        "https://h.example/a/../b",
        "https://h.example/a/./b",
        "https://h.example/a/%2e%2E/b",
        "https://{host}/a",
        "https://h.example:{port}/a",
        "https://user:pass@h.example/a",
        "https://h.example/a#{part}",
        "https://h.example/{}",
        "https://h.example/{a",
        "https://h.example/a\n",
        "https://h.example:x/",
        "/a",
        "ftp://h.example/a",
        "",
    ],
)
def test_a_url_that_leads_elsewhere_is_refused(url: str) -> None:
    with pytest.raises(Refused, match="URL"):
        Operation.of({"url": url})


def test_path_styles() -> None:
    arguments = {"v": [3, 4, None, "a/b"], "o": {"R": 100, "G": None, "B": "x y"}, "s": "t"}

    def sent(name: str, style: str | None, explode: bool | None) -> str:
        wire = {"query_params": {name: {"style": style, "explode": explode}}}
        action = path(f"https://h.example/p/{{{name}}}", **{name: {}})
        return built({**action, "wire": wire}, {name: arguments[name]}).path.removeprefix("/p/")

    assert [sent(name, None, None) for name in "vos"] == ["3,4,a%2Fb", "R,100,B,x%20y", "t"]
    assert [sent(name, "simple", True) for name in "vos"] == ["3,4,a%2Fb", "R=100,B=x%20y", "t"]
    assert [sent(name, "label", False) for name in "vos"] == [".3,4,a%2Fb", ".R,100,B,x%20y", ".t"]
    assert [sent(name, "label", True) for name in "vos"] == [".3.4.a%2Fb", ".R=100.B=x%20y", ".t"]
    assert [sent(name, "matrix", False) for name in "vos"] == [";v=3,4,a%2Fb", ";o=R,100,B,x%20y", ";s=t"]
    assert [sent(name, "matrix", True) for name in "vos"] == [";v=3;v=4;v=a%2Fb", ";R=100;B=x%20y", ";s=t"]


async def test_what_stands_in_the_url_is_sent_as_it_stands() -> None:
    with raw_server() as server:
        action = path(f"{server.origin}/a//b%2Fc/ü/{{x}}/?fixed=1&y={{x}}&z=%20ü", x=TEXT, q=TEXT)
        await result_of_call(action, {"x": "1&2", "q": "+ %"})
        assert server.last.target == "/a//b%2Fc/%C3%BC/1%262/?fixed=1&y=1%262&z=%20%C3%BC&q=%2B%20%25"
        assert '"x"' in refused(action, {"q": "1"})
        await result_of_call({"url": server.origin})
        assert server.last.target == "/"
    assert "characters" in refused(action, {"x": "x" * 20_000})


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=12), st.sampled_from([None, "label", "matrix"]))
def test_no_text_leaves_its_segment(value: str, style: str | None) -> None:
    action = path("https://h.example/a/{x}/b", x=TEXT)
    try:
        request = built({**action, "wire": {"query_params": {"x": {"style": style}}}}, {"x": value})
    except (Refused, UnicodeEncodeError):
        assert value in ("", ".", "..") or any("\ud800" <= char <= "\udfff" for char in value)
        return
    _, first, segment, last = request.path.split("/")
    assert (first, last, request.query) == ("a", "b", "")
    assert unquote(segment) == {None: "", "label": ".", "matrix": ";x="}[style] + value
    assert httpx.URL(f"{request.origin}{request.path}").raw_path.decode() == request.path
