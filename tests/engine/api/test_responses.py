"""What comes back, whatever a server says of it (CASES API-11)."""

from __future__ import annotations

import gzip
import re
from base64 import b64decode
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.api.masking import Masker
from engine.api.operation import Operation
from engine.api.response import result_of
from engine.contract import ToolResult
from engine.net.policy import NetPolicy
from engine.net.reply import Reply
from engine.results import finish
from tests.engine.api.calls import LOCAL, result_of_call
from tests.engine.api.raw_server import RawServer, answer, raw_server

__all__ = ()

pytestmark = pytest.mark.anyio
OK = "API call successful."
TYPES = [
    None,
    "",
    "application/json",
    "application/json; charset=utf-16",
    "text/plain; charset=utf-7",
    "text/html; charset=idna",
    "text/xml; charset=unicode_escape",
    "text/plain; charset=\0",
    "application/octet-stream",
    "x/y; charset=undefined",
]
PNG = b"\x89PNG\r\n\x1a\n\x00\xff" * 10


async def brought(server: RawServer, response: bytes, policy: NetPolicy = LOCAL, **action: Any) -> ToolResult:
    """Return what a call brings that is answered so."""
    server.answers = [response]
    return await result_of_call({"url": f"{server.origin}/x", **action}, policy=policy)


async def test_case_api_11_what_comes_back_is_read_as_what_it_is() -> None:
    nested = b"[" * 5000 + b"]" * 5000
    invalid = f"{OK} It is declared as JSON and is none: it is given as text."
    html = f"{OK} It is declared as JSON and is HTML or XML (often an error or login page): it is given as text."
    twice = f'{OK} Its key "a" comes more than once: the last counts.'
    with raw_server() as server:
        for body, content_type, data, message in (
            (b'{"a":[1,null,"\xc3\xa9"]}', "application/json", {"a": [1, None, "é"]}, OK),
            (b'{"a":1}', "application/problem+json; charset=UTF-8", {"a": 1}, OK),
            (b"\xef\xbb\xbf[1]", "application/json", [1], OK),
            ("[1]".encode("utf-16"), "application/json", [1], OK),
            ("[1]".encode("utf-16-le"), "application/json", [1], OK),
            (b'"\xe9"', "application/json; charset=iso-8859-1", "é", OK),
            (b'"\xe9"', "application/json", "é", OK),
            (b"", "application/json", None, OK),
            (b"  ", "application/json", None, OK),
            (b"<html>no</html>", "application/json", "<html>no</html>", html),
            (b"{no", "application/json", "{no", invalid),
            (b'{"a":1,"a":2}', "application/json", {"a": 2}, twice),
            (b"[NaN,-Infinity]", "application/json", [None, None], f"{OK} It holds -Infinity, NaN, given as null."),
            (nested, "application/json", nested.decode(), invalid),
            (b"[" + b"1" * 5000 + b"]", "application/json", "[" + "1" * 5000 + "]", invalid),
            (b"Bl\xe5b\xe6r", "text/plain; charset=iso-8859-1", "Blåbær", OK),
            (b"Bl\xe5b\xe6r", 'text/plain; charset="bogus"', "Blåbær", OK),
            (b"Bl\xe5b\xe6r", "text/plain; charset=hex", "Blåbær", OK),
            ("Blåbær".encode(), "text/plain; charset=bogus", "Blåbær", OK),
            ("Blåbær".encode("utf-16"), "text/plain", "Blåbær", OK),
            ("日".encode("utf-8-sig"), "text/html", "日", OK),
            (b"<a/>", "application/xml", "<a/>", OK),
            (b'{"a":1}', None, {"a": 1}, OK),
            (b"{no", None, "{no", OK),
            (b"plain", None, "plain", OK),
            (b"plain", "no type at all", "plain", OK),
            (b"plain", "application/x-unheard-of", "plain", OK),
        ):
            result = await brought(server, answer(body, content_type=content_type))
            assert result.data == {"status_code": 200, "data": data, "message": message}, (body[:40], content_type)
            assert result.status == "completed"
        result = await brought(server, answer(status=204, content_type=None))
        assert result == ToolResult({"status_code": 204, "data": None, "message": OK})


async def test_case_api_11_bytes_are_kept_and_never_decoded_as_text() -> None:
    with raw_server() as server:
        for body, content_type in (
            (PNG, "application/octet-stream"),
            (PNG, "image/png"),
            (PNG, None),
            (PNG, "text/plain; charset=utf-8"),
            (b"%PDF-1.4 text", "text/html"),
            (b"\x00\x01\xfe", "application/x-unheard-of"),
            (b"GIF89a", "application/json"),
        ):
            result = await brought(server, answer(body, content_type=content_type))
            kept = result.data["data"]
            assert b64decode(kept.pop("base64")) == body
            stated = content_type or "application/octet-stream"
            assert kept == {"content_type": stated, "bytes": len(body), "sha256": sha256(body).hexdigest()}
            assert (result.status, result.data["message"]) == ("completed", OK)


async def test_case_api_11_errors_are_errors_with_bounded_text() -> None:
    text = "text/plain; charset=iso-8859-1"
    with raw_server() as server:
        result = await brought(server, answer(b"Bl\xe5b\xe6r", 404, text))
        said = {"status_code": 404, "data": "Blåbær", "message": "HTTP Error 404"}
        assert (result.status, result.data) == ("error", said)
        result = await brought(server, answer(b'{"code":7}', 422))
        assert result.data == {"status_code": 422, "data": {"code": 7}, "message": "HTTP Error 422"}
        result = await brought(server, answer(b"<p>" + b"x" * 20_000_000, 500, "text/html"))
        assert (result.status, len(result.data["data"])) == ("error", 16_384)
        assert result.data["message"].startswith("HTTP Error 500. It was not read to its end")
        result = await brought(server, answer(PNG, 500, "image/png"))
        assert result.data["data"] == {
            "content_type": "image/png",
            "bytes": len(PNG),
            "sha256": sha256(PNG).hexdigest(),
        }
        assert (await brought(server, answer(b"", 418))).data["data"] is None


async def test_case_api_11_a_body_that_is_not_packed_as_it_says_fails_the_call() -> None:
    with raw_server() as server:
        packed = answer(gzip.compress(b'{"a":1}'), Content_Encoding="gzip")
        assert (await brought(server, packed)).data["data"] == {"a": 1}
        for method, unknown in (("GET", False), ("POST", True)):
            result = await brought(server, answer(b'{"a":1}', Content_Encoding="gzip"), method=method)
            assert (result.status, result.data["status_code"], result.data["data"]) == ("error", None, None)
            assert result.data["message"].startswith("API call failed: ")
            assert ("not known" in result.data["message"]) is unknown


async def test_what_is_too_large_is_given_in_part() -> None:
    small = replace(LOCAL, largest=100_000)
    with raw_server() as server:
        body = b'{"a":"' + "é".encode() * 100_000 + b'"}'
        undeclared = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n" + body
        result = await brought(server, undeclared, small)
        assert result.data["message"].startswith(f"{OK} It was not read to its end")
        assert 1000 < len(result.data["data"]) <= 50_010
        assert body.decode().startswith(result.data["data"])
        result = await brought(server, answer(body), small)
        assert result.data == {"status_code": 200, "data": None, "message": f"{OK} It is too large, and was not read."}


async def test_redirects_are_reported_and_not_followed() -> None:
    with raw_server() as server:
        moved = answer(b"", 302, None, Location=f"{server.origin}/elsewhere")
        result = await brought(server, moved)
        assert (result.status, result.data["status_code"]) == ("completed", 302)
        assert result.data["location"] == f"{server.origin}/elsewhere"
        assert result.data["message"] == f'{OK} It redirects to "location", which was not followed.'
        assert len(server.received) == 1
        made = await brought(server, answer(b"{}", 201, Location="/things/7", Link='</things?page=2>; rel="next"'))
        assert (made.data["location"], made.data["link"]) == ("/things/7", '</things?page=2>; rel="next"')
        assert made.data["message"] == OK
        head = await brought(server, b"HTTP/1.1 200 OK\r\nContent-Length: 70\r\nETag: x\r\n\r\n", method="HEAD")
        assert head.data == {
            "status_code": 200,
            "data": None,
            "message": OK,
            "headers": {"content-length": "70", "etag": "x"},
        }


async def test_a_projection_is_applied_first() -> None:
    page = answer(b'{"items":[{"id":1,"x":"%s"},{"id":2}],"n":2}' % (b"y" * 1000))
    with raw_server() as server:
        assert (await brought(server, page, project="items[].id")).data["data"] == [1, 2]
        assert (await brought(server, page, project="nothing")).data["data"] is None
        failed = await brought(server, page, project="sum(items)")
        assert failed.data["data"]["n"] == 2
        assert "could not be projected" in failed.data["message"]
        assert (
            "not projected"
            in (await brought(server, answer(b"x", content_type="text/plain"), project="a")).data["message"]
        )
        # An error is never projected away.
        assert (await brought(server, answer(b'{"why":1}', 400), project="items")).data["data"] == {"why": 1}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_brings_no_response() -> None:
    with raw_server() as server:
        closed = server.origin
    for url, said in (
        ("http://127.0.0.2/x", "URL validation error: "),
        ("http://localhost/x", "URL validation error: "),
        (f"{closed}/x", "Connection error: "),
    ):
        result = await result_of_call({"url": url, "method": "PATCH"})
        assert (result.status, result.data["status_code"], result.data["data"]) == ("error", None, None)
        assert result.data["message"].startswith(said)
    assert (await result_of_call({"url": "http://h/", "method": "TRACE"})).data[
        "message"
    ] == "Unsupported HTTP method: TRACE"


async def test_a_call_ends_at_its_deadline() -> None:
    with raw_server() as server:
        server.answers = [b"HTTP/1.1 200 OK\r\nContent-Length: 70\r\n\r\nslow"]
        server.holds = True
        for method, unknown in (("GET", ""), ("POST", ". Whether the call had its effect is not known.")):
            result = await result_of_call({"url": server.origin, "method": method}, seconds=0.5 / 0.95)
            # What went before the request took its part of the time.
            said = re.sub(r"\(0\.[1-5]\d*s", "(0.5s", result.data["message"])
            assert {**result.data, "message": said} == {
                "status_code": None,
                "data": None,
                "message": f"Request timeout (0.5s exceeded){unknown}",
            }


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40), st.sampled_from(TYPES), st.sampled_from([200, 404]), st.booleans())
def test_no_body_breaks_a_call(body: bytes, content_type: str | None, status: int, is_cut: bool) -> None:
    headers = () if content_type is None else (("Content-Type", content_type),)
    reply = Reply(url="", status=status, headers=headers, content_type="", charset=None, body=body, is_cut=is_cut)
    result = result_of(reply, Operation.of({"url": "https://h.example/", "project": "a.b"}), Masker({"k": "secret"}))
    assert finish(result).value["status_code"] == status
