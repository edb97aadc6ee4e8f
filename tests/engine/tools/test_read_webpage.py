"""``read_webpage``: fenced text of pages and documents, part by part, or an error result that says what was wrong."""

from __future__ import annotations

import re
import sys
from typing import Any

import msgspec
import pytest

from engine import CallContext, Engine, Settings, ToolCall
from engine.contract import Scope, ToolResult
from engine.services import Services
from engine.tools.read_webpage import ReadWebpage
from engine.web.article import read_whole
from engine.web.conversion import Conversion, environment
from engine.web.document import Unreadable
from engine.web.reading import KeptPages, ReadPage, Wanted
from events.types import Executed
from tests.engine.net.names import policy
from tests.engine.tools.documents import ARTICLE, archive_of, pdf, presentation, spreadsheet, word
from tests.engine.web_server import Page, WebServer, raw, redirect, text, web_server

pytestmark = pytest.mark.anyio
FENCED = re.compile(
    r"URL: (?P<url>\S+)\nRead as: (?P<form>.*)\n(?P<part>.*)\n"
    r"What stands between the marks (?P<mark>\w{16}) is .*\n<<<(?P=mark)\n(?P<text>.*)\n(?P=mark)>>>",
    re.DOTALL,
)
STATED = "Title: Dredging ends\nAuthor: Ada Lovelace\nDate: 2026-02-03"
UTF_16 = "hellö".encode("utf-16-le")


async def read(url: Any, *allow: str, action: str = "read_webpage", **arguments: Any) -> Any:
    return (await read_often(url, arguments, allow=allow, action=action))[0]


async def read_often(url: Any, *calls: dict[str, Any], allow: tuple[str, ...] = (), **more: Any) -> list[Any]:
    limits = {"largest": more.pop("largest")} if "largest" in more else {}
    services = Services(policy(*allow, **limits))
    tool = ReadWebpage({}, Scope(user_id=None, owner=None, tool_id="t", services=services))
    try:
        return [await tool.execute_action(more.get("action", "read_webpage"), url=url, **call) for call in calls]
    finally:
        await services.aclose()


async def read_page(page: Page, **arguments: Any) -> Any:
    """Read a page of a server on this machine."""
    return (await read_parts(page, arguments))[0]


async def read_parts(page: Page, *calls: dict[str, Any], **more: Any) -> list[Any]:
    """Read a page with one call after another."""
    with web_server({"/p": page}) as server:
        return await read_often(f"http://127.0.0.1:{server.port}/p", *calls, allow=("127.0.0.1",), **more)


def within(result: Any) -> re.Match[str]:
    match = FENCED.fullmatch(result)
    assert match, result
    return match


def failure(result: Any) -> str:
    assert isinstance(result, ToolResult), result
    assert result.status == "error"
    return str(result.data)


async def test_a_page_comes_fenced_with_its_title_and_final_address() -> None:
    pages = {"/a": redirect("/b"), "/b": text("<title>T</title><h1>H</h1><p>Body", "text/html")}
    with web_server(pages) as server:
        found = within(await read(f"http://127.0.0.1:{server.port}/a", "127.0.0.1"))
    assert found["url"] == f"http://127.0.0.1:{server.port}/b"
    assert (found["form"], found["part"]) == ("whole page", "Characters 0 to 9 of 9.")
    assert found["text"] == "Title: T\n\n# H\n\nBody"


async def test_the_fence_is_new_every_time_so_that_no_page_can_close_it() -> None:
    first, second = [within(await read_page(text("same")))["mark"] for _ in range(2)]
    assert first != second


async def test_an_article_comes_without_what_stands_around_it_unless_all_is_wanted() -> None:
    page = text(ARTICLE, "text/html")
    results = await read_parts(page, {"limit": 60_000}, {"whole_page": True}, {"links": True}, {"limit": 300})
    article, whole, links, part = map(within, results)
    assert article["form"] == "article (trafilatura)"
    assert article["text"].startswith(f"{STATED}\n\n# Dredging ends\n\n")
    assert article["text"].count("low tide") == 20
    assert [word for word in ("Home page", "cookies", "Imprint") if word in article["text"]] == []
    assert whole["form"] == "whole page"
    assert [word for word in ("Home page", "cookies", "Imprint", "low tide") if word not in whole["text"]] == []
    origin = article["url"].removesuffix("/p")
    assert links["text"] == f"- [Home page of ours]({origin}/home)\n- [report]({origin}/report.pdf)"
    assert re.fullmatch(r"Characters 0 to 300 of \d{4}; next offset: 300\.", part["part"])


async def test_without_the_library_pages_are_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    found = within(await read_page(text(ARTICLE, "text/html")))
    assert found["form"] == "whole page"
    assert found["text"].startswith(f"{STATED}T10:00:00Z\n\n- Home page")


async def test_a_long_text_is_read_part_by_part_of_one_page() -> None:
    body = "".join(f"{number:04}," for number in range(9_000))
    served: list[str] = [body, "changed"]

    def page(request: Any) -> None:
        text(served.pop(0))(request)

    asked: list[dict[str, Any]] = [
        {},
        {"offset": 20_000, "limit": 60_000},
        {"find": "0042, 0043,"},
        {"offset": 45_000},
        {},
    ]
    first, second, none, past, changed = await read_parts(page, *asked)
    parts = [within(first), within(second)]
    assert "".join(part["text"] for part in parts) == body
    assert parts[0]["part"] == "Characters 0 to 20000 of 45000; next offset: 20000."
    assert parts[1]["part"] == "Characters 20000 to 45000 of 45000."
    assert within(none)["text"] == "(nothing was found)"
    assert failure(past) == "Error: The page has 45000 characters; offset 45000 is past its end."
    assert within(changed)["text"] == "changed"


async def test_places_are_found_with_what_stands_around_them() -> None:
    body = "".join(f"{'x' * 600} Low\nTide {number}. " for number in range(25))
    near = "the TIDE and the tide"
    shown, rest, close = await read_parts(text(body), {"find": "low tide"}, {"find": "low tide", "offset": 12_000}, {})
    found = within(shown)
    assert re.fullmatch(r"Found 25 times in \d+ characters; the next ones: find with offset \d+\.", found["part"])
    assert found["text"].count("[offset ") == found["text"].count("Tide") == 20
    following = int(found["part"].rpartition(" ")[2].rstrip("."))
    assert body[following:].startswith("Low\nTide 20.")
    place = int(found["text"].removeprefix("[offset ").partition("]")[0])
    assert "Tide 0." in body[place : place + 600]
    assert within(rest)["part"].startswith("Found 6 times")
    assert within(close)
    together = within(await read_page(text(near), find="tide"))
    assert together["part"] == "Found 2 times in 21 characters."
    assert together["text"] == f"[offset 0]\n{near}"


@pytest.mark.parametrize(
    ("page", "form", "body"),
    [
        (text('{"a_b": "x*y <z>"}', "application/json"), "JSON", '{"a_b": "x*y <z>"}'),
        (text('{"a_b": "x*y <z>"}', "text/html"), "JSON", '{"a_b": "x*y <z>"}'),
        (text("\ufeff[1]", ""), "JSON", "[1]"),
        (text('{"a": 1}\n{"a": 2}', "application/x-ndjson+json"), "JSON", '{"a": 1}\n{"a": 2}'),
        (text("a < b\n  <not html>", "text/plain; charset=utf-8"), "text", "a < b\n  <not html>"),
        (text("<rss><title>x</title></rss>", "application/rss+xml"), "text", "<rss><title>x</title></rss>"),
        (text("<p>hello", ""), "whole page", "hello"),
        (text("a < b", ""), "text", "a < b"),
        (raw("hellö".encode("utf-16"), "text/plain"), "text", "hellö"),
        (raw(UTF_16, "text/plain; charset=utf-16le"), "text", "hellö"),
        (raw("<meta charset=iso-8859-1>“ü”".encode("cp1252"), "text/html"), "whole page", "“ü”"),
        (raw("<?xml version='1.0' encoding='koi8-r'?>да".encode("koi8-r"), "application/xml"), "text", None),
        (raw("\ufeffü".encode(), "text/plain; charset=latin-1"), "text", "ü"),
        (raw("ü".encode(), "text/plain; charset=punycode"), "text", "ü"),
        (text("", "text/html"), "whole page", "(the page has no text)"),
    ],
)
async def test_each_kind_of_text_is_read_as_it_is(page: Page, form: str, body: str | None) -> None:
    found = within(await read_page(page))
    assert found["form"] == form
    assert found["text"] == body if body is not None else found["text"].endswith("да")


async def test_documents_are_read_by_their_content_whatever_they_are_called() -> None:
    lying = "text/html; charset=utf-8"
    letter = word("<w:p><w:r><w:t>Dear sir,</w:t></w:r></w:p><w:p><w:r><w:t>Nine metres.</w:t></w:r></w:p>")
    texts = [
        within(await read_page(raw(pdf("Hello harbour", "Second page"), lying))),
        within(await read_page(raw(letter, "application/octet-stream"))),
        within(await read_page(raw(spreadsheet(), ""))),
        within(await read_page(raw(presentation(), "image/png"))),
    ]
    assert [found["form"] for found in texts] == [
        "PDF, 2 pages (pypdfium2)",
        "Word document (mammoth)",
        "spreadsheet, 2 sheets (openpyxl)",
        "presentation, 1 slide (python-pptx)",
    ]
    bodies = [found["text"].partition("\n\n")[2] for found in texts]
    assert texts[0]["text"].startswith("Title: The Title\nAuthor: Ada\nDate: 2026-01-31\n\n")
    assert bodies[0] == "## Page 1\n\nHello harbour\n\n## Page 2\n\nSecond page"
    assert texts[1]["text"] == "Title: A letter\nAuthor: Ada\n\nDear sir,\n\nNine metres."
    rows = "| Coin | Price | On |\n| a\\|b | 1.5 | 2026-01-31 |"
    assert bodies[2] == f"## Sheet Prices\n\n{rows}\n\n## Sheet Far\n\n|  |  | down here |"
    assert bodies[3] == "## Slide 1\n\nHarbour\n\nNine metres\n\n| depth | 9 m |\n\nNotes: say it slowly"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"%PDF-1.7 nothing", "URL returned a PDF, which cannot be read: it is broken."),
        (pdf(), None),
        (
            archive_of({"word/document.xml": b"\0" * (201 * 1024 * 1024)}),
            "a Word document, which cannot be read: it expands to more than 200 MB, or 10,000 files.",
        ),
        (archive_of({"xl/workbook.xml": b"<a"}), "a spreadsheet, which cannot be read: it is broken, or of a form"),
        (
            archive_of({"ppt/presentation.xml": b"<a"}),
            "a presentation, which cannot be read: it is broken, or",
        ),
        (archive_of({"x": b"y"}), "binary content, which cannot be read as text."),
    ],
    ids=["no pdf", "pictures", "bomb", "no sheet", "no slides", "an archive"],
)
async def test_broken_documents_are_error_results(body: bytes, said: str | None) -> None:
    result = await read_page(raw(body, "text/html"))
    if said is None:
        assert within(result)["text"].endswith("(there is no text in it: its pages are pictures)")
    else:
        assert said in failure(result)


async def test_without_its_library_a_document_is_an_error_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    assert failure(await read_page(raw(pdf("x")))) == (
        "Error: URL returned a PDF, which cannot be read: pypdfium2 is not installed; "
        "the operator must install calljournal[documents]."
    )


async def test_reading_is_bounded_in_time_and_sees_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLJOURNAL_MASTER_KEY", "secret")
    conversion = Conversion(Services())
    assert (await conversion.document("html", b"<p>x", "http://e.example/")).text == "x"
    with pytest.raises(Unreadable, match=r"longer than 0\.01 s"):
        await conversion.document("html", b"<p>x", "http://e.example/", seconds=0.01)
    with pytest.raises(Unreadable, match="too much time or memory"):
        await conversion.document("no such kind", b"<p>x", "http://e.example/")
    assert "secret" not in environment().values()


async def test_a_page_of_a_hundred_thousand_open_tags_is_read() -> None:
    found = within(await read_page(text("<div>" * 100_000 + ARTICLE, "text/html"), limit=60_000))
    assert found["text"].count("low tide") == 20


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (text("x", "image/png"), "Error: URL returned content type 'image/png', which is no text."),
        (text("x", "application/pdf"), "Error: URL returned content type 'application/pdf', which is no text."),
        (raw(b"\x1f\x8bxx", "text/plain"), "Error: URL returned binary content, which cannot be read as text."),
        (raw(b"\x89PNG\r\n", "text/html"), "Error: URL returned binary content, which cannot be read as text."),
        (raw(b"ab\0cd", "text/plain"), "Error: URL returned binary content, which cannot be read as text."),
        (raw(b"x" * (10 * 1024 * 1024 + 1)), "Error: The page is too large to read (over 10 MB)."),
        (redirect(None), "Error: URL responded with a redirect but no target location."),
        (redirect("http://10.0.0.1/"), "Error: URL validation failed - "),
        (redirect("/p"), ": it redirects more than 5 times"),
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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"offset": -1}, 'Error: The argument "offset" must be a whole number from 0'),
        ({"limit": 70_000}, 'Error: The argument "limit" must be a whole number from 1 to 60000.'),
        ({"find": 5}, 'Error: The argument "find" must be text.'),
        ({"links": "yes"}, 'Error: The argument "links" must be true or false.'),
    ],
)
async def test_arguments_that_do_not_fit_are_error_results(arguments: dict[str, Any], said: str) -> None:
    assert failure(await read("http://example.com/", **arguments)).startswith(said)


async def test_a_status_of_error_is_an_error_result() -> None:
    with web_server({}) as server:
        url = f"http://127.0.0.1:{server.port}/gone"
        assert failure(await read(url, "127.0.0.1")) == f"Error fetching URL {url}: HTTP status 404"


async def test_an_operator_may_allow_less() -> None:
    (result,) = await read_parts(raw(b"x" * 1_048_577), {}, largest=1_048_576)
    assert failure(result) == "Error: The page is too large to read (over 1 MB)."


async def test_a_rows_config_opens_nothing() -> None:
    tool = ReadWebpage({"allow_hosts": ["127.0.0.1"]}, Scope(user_id=None, owner=None, tool_id="t"))
    assert "URL validation failed" in failure(await tool.execute_action("read_webpage", url="http://127.0.0.1/"))


async def test_an_unknown_action_is_an_error_result() -> None:
    assert "Unknown action 'fetch'" in failure(await read("http://example.com/", action="fetch"))


def test_pages_are_kept_for_a_while_each_for_its_user() -> None:
    kept = KeptPages(Services())
    mine, others = Wanted("u", "a", False), Wanted("u", "b", False)
    page = ReadPage("u", read_whole(b"<p>x", "u"))
    kept.keep(mine, page, 10.0)
    assert kept.found(mine, 310.0) is page
    assert kept.found(mine, 311.0) is None
    assert kept.found(others, 10.0) is None
    for number in range(40):
        kept.keep(msgspec.structs.replace(mine, url=str(number)), page, 10.0)
    assert kept.found(mine, 10.0) is None
    assert kept.found(msgspec.structs.replace(mine, url="39"), 10.0) is page


async def test_the_engine_checks_journals_and_replays_it(journal_url: str) -> None:
    with web_server({"/p": text(ARTICLE, "text/html")}) as server:
        url = f"http://127.0.0.1:{server.port}/p"
        async with Engine.open(journal_url, settings=Settings(net=policy("127.0.0.1"))) as engine:
            wanted = ToolCall(id="c1", name="read_webpage", arguments={"url": url, "limit": 100})
            found = await outcome(engine, wanted)
            assert isinstance(found, Executed)
            assert within(found.result)["form"] == "article (trafilatura)"
            assert (await outcome(engine, wanted)) == found
            refused = await outcome(engine, ToolCall(id="c2", name="read_webpage", arguments={"url": url, "limit": 0}))
            assert getattr(refused, "kind", "") == "invalid_arguments"
        assert asked(server) == 1
    assert ReadWebpage({}, Scope(user_id=None, owner=None, tool_id="t")).preview_request("read_webpage", {"url": url})


async def outcome(engine: Engine, call: ToolCall) -> Any:
    *_, last = [event async for event in engine.execute(call, CallContext(user_id="u", message_id="m"))]
    return last


def asked(server: WebServer) -> int:
    return len(server.asked)


def test_what_it_says_of_itself() -> None:
    tool = ReadWebpage({}, Scope(user_id=None, owner=None, tool_id="t"))
    assert [action["name"] for action in tool.get_actions_metadata()] == ["read_webpage"]
    assert tool.get_config_requirements() == {}
    assert (tool.default_on, tool.effect, tool.idempotent, tool.timeout) == (True, "read", True, 60.0)
    shown = tool.preview_request("read_webpage", {"url": "https://e.example/a?b=1"})
    assert shown.startswith("GET /a?b=1 HTTP/1.1\nHost: e.example\nUser-Agent: calljournal/0.1\n")
