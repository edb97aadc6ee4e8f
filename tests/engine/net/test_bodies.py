"""Bodies: unpacked, counted, timed; whatever a server sends, there is an end of it."""

from __future__ import annotations

import gzip
import zlib
from functools import partial
from http.server import BaseHTTPRequestHandler

import anyio
import pytest

from engine.net import BadResponse, DeadlineExceeded, ResponseTooLarge
from engine.net.client import SafeClient
from engine.net.reply import Reply
from tests.engine.net.clients import client_of
from tests.engine.net.names import LOCAL, Names, policy
from tests.engine.web_server import Page, WebServer, endless, raw, redirect, text, web_server

__all__ = ()

pytestmark = pytest.mark.anyio


async def got(server: WebServer, path: str = "/", method: str = "GET", **settings: int | float) -> Reply:
    async with client_of(policy(f"127.0.0.1:{server.port}", **settings)) as client:
        return await client.request(method, f"http://127.0.0.1:{server.port}{path}", follow=True)


def dripping(piece: bytes, *, status: int = 200, begun: bool = True) -> Page:
    """Sends a piece, then nothing more until the client goes away."""

    def page(request: BaseHTTPRequestHandler) -> None:
        request.close_connection = True
        if begun:
            request.send_response(status)
            request.end_headers()
            request.wfile.write(piece)
            request.wfile.flush()
        request.connection.settimeout(10)
        request.rfile.read(1)

    return page


async def test_gzip_is_unpacked_even_in_several_members_and_pieces() -> None:
    noise = bytes(zlib.crc32(number.to_bytes(4, "big")) & 255 for number in range(300_000))
    for members in ((b"one ", b"two"), (b"",), (noise,), (noise, bytes(1_000_000), b"end")):
        packed = b"".join(gzip.compress(each) for each in members)
        for encoding in ("gzip", "X-GZIP"):
            with web_server({"/": raw(packed, Content_Encoding=encoding)}) as server:
                assert (await got(server)).body == b"".join(members)


async def test_case_api_11_what_is_packed_otherwise_than_said_or_asked_for_is_an_error() -> None:
    packed = gzip.compress(b"x" * 1000)
    rows = [("gzip", b"nothing packed"), ("gzip", packed[:-9]), ("gzip", packed + b"garbage"), ("br", b"x")]
    rows += [("deflate", zlib.compress(b"x")), ("gzip, gzip", gzip.compress(packed)), ("canary", b"x")]
    for encoding, body in rows:
        with web_server({"/": raw(body, Content_Encoding=encoding)}) as server:
            with pytest.raises(BadResponse) as caught:
                await got(server)
            assert "canary" not in str(caught.value)


async def test_case_api_11_a_status_of_error_is_no_error_and_its_body_has_a_bound() -> None:
    latin = raw(b"Bl\xe5b\xe6r", "text/plain; charset=iso-8859-1", 404)
    pages = {
        "/404": latin,
        "/500": raw(b"<p>" * 7_000_000, "text/html", 500),
        "/502": endless(b"x" * 4096, 502),
        "/503": raw(b"no gzip", "text/plain", 503, Content_Encoding="gzip"),
        "/504": raw(gzip.compress(bytes(5_000_000)), "text/plain", 504, Content_Encoding="gzip"),
        "/505": raw(b"x", "text/plain", 505, Content_Encoding="br"),
        "/506": raw(b"short", "text/plain", 506, Content_Length="100"),
    }
    with web_server(pages) as server:
        reply = await got(server, "/404")
        assert (reply.status, reply.body.decode(reply.charset or ""), reply.is_cut) == (404, "Blåbær", False)
        sizes = {path: (await got(server, path)) for path in pages if path != "/404"}
    assert {path: (len(reply.body), reply.is_cut) for path, reply in sizes.items()} == {
        "/500": (65536, True),
        "/502": (65536, True),
        "/503": (0, True),
        "/504": (65536, True),
        "/505": (0, True),
        "/506": (5, True),
    }


async def test_case_api_11_no_body_is_an_empty_one() -> None:
    pages = {"/204": raw(b"", "text/plain", 204), "/empty": raw(b"", "application/json"), "/big": raw(b"x" * 5000)}
    pages["/typeless"] = raw(b"x", "", Content_Encoding="")
    with web_server(pages, keeps_alive=True) as server:
        assert [((await got(server, path)).status, (await got(server, path)).body) for path in ("/204", "/empty")] == [
            (204, b""),
            (200, b""),
        ]
        # The length that HEAD tells is no body's.
        assert (await got(server, "/204", "HEAD", largest=10)).body == b""
        typeless = await got(server, "/typeless")
        assert (typeless.content_type, typeless.charset) == ("", None)


async def test_a_body_may_be_as_large_as_allowed_and_no_larger() -> None:
    packed = raw(gzip.compress(b"x" * 1000), Content_Encoding="gzip")
    with web_server({"/": raw(b"x" * 1000), "/packed": packed}) as server:
        for path in ("/", "/packed"):
            assert len((await got(server, path, largest=1000)).body) == 1000
            with pytest.raises(ResponseTooLarge, match="larger than 999 bytes"):
                await got(server, path, largest=999)


async def test_a_length_over_the_limit_is_refused_before_anything_is_read() -> None:
    for declared in ("1001", "9" * 20):
        pages: dict[str, Page] = {"/": partial(_say, declared)}
        with web_server(pages) as server, pytest.raises(ResponseTooLarge):
            await got(server, largest=1000)


def _say(length: str, request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Length", length)
    request.end_headers()
    request.connection.settimeout(10)
    request.rfile.read(1)


async def test_case_truncate_03_an_endless_body_stops_at_the_limit() -> None:
    with web_server({"/": endless(b"x" * 4096)}) as server, pytest.raises(ResponseTooLarge):
        await got(server, largest=100_000)


async def test_case_truncate_03_a_gzip_bomb_is_noticed_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = gzip.compress(bytes(20_000_000), 9)
    largest: list[int] = []
    made = zlib.decompressobj

    class Watched:
        def __init__(self, wbits: int) -> None:
            self.inner = made(wbits)
            self.eof, self.unused_data, self.unconsumed_tail = False, b"", b""

        def decompress(self, data: bytes, at_most: int) -> bytes:
            out = self.inner.decompress(data, at_most)
            largest.append(len(out))
            self.unconsumed_tail = self.inner.unconsumed_tail
            return out

    monkeypatch.setattr(zlib, "decompressobj", Watched)
    with web_server({"/": raw(bomb, Content_Encoding="gzip")}) as server, pytest.raises(ResponseTooLarge):
        await got(server, largest=1_000_000)
    assert sum(largest) == 1_000_001
    assert max(largest) <= 64 * 1024


async def test_the_deadline_is_for_everything_together() -> None:
    pages = {
        "/silent": dripping(b"", begun=False),
        "/drip": dripping(b"x"),
        "/error": dripping(b"x", status=500),
        "/gzip": endless(b"", Content_Encoding="gzip"),
        "/redirect": redirect("/drip"),
    }
    with web_server(pages) as server:
        for path in ("/silent", "/drip", "/error", "/redirect"):
            with pytest.raises(DeadlineExceeded, match=r"^it took longer than 0\.2 s$"):
                await got(server, path, deadline=0.2)


async def test_the_deadline_is_for_looking_up_and_connecting_too() -> None:
    async def never(host: str, port: int) -> list[str]:
        await anyio.sleep_forever()
        return []

    async with client_of(policy(), never) as client:
        with pytest.raises(DeadlineExceeded):
            await client.request("GET", "http://example.com/", deadline=0.1)


async def test_a_callers_limits_hold_within_the_policys() -> None:
    with web_server({"/": raw(b"x" * 1000), "/drip": dripping(b"x")}) as server:
        url = f"http://127.0.0.1:{server.port}"
        async with client_of(policy(LOCAL, largest=500, deadline=0.2)) as client:
            with pytest.raises(ResponseTooLarge, match="larger than 500 bytes"):
                await client.request("GET", url, largest=2000)
            with pytest.raises(ResponseTooLarge, match="larger than 0 bytes"):
                await client.request("GET", url, largest=0)
            with pytest.raises(DeadlineExceeded, match=r"longer than 0\.2 s"):
                await client.request("GET", f"{url}/drip", deadline=60)
            with pytest.raises(DeadlineExceeded, match=r"longer than 0 s"):
                await client.request("GET", url, deadline=0)


async def test_a_broken_answer_is_an_error() -> None:
    def broken(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
        request.close_connection = True

    with web_server({"/": broken}) as server, pytest.raises(BadResponse, match="broke off: it is incomplete"):
        await got(server)


async def test_whoever_stops_reading_a_stream_leaves_the_client_well() -> None:
    with web_server({"/": endless(b"x" * 4096), "/end": text("end")}, keeps_alive=True) as server:
        url = f"http://127.0.0.1:{server.port}"
        async with client_of(policy(LOCAL, connections=1)) as client:
            for read in (0, 1, 3):
                async with client.stream("GET", url) as answer:
                    for _ in range(read):
                        assert await anext(aiter(answer))
            with pytest.raises(ZeroDivisionError):
                await _dividing(client, url)
            with anyio.move_on_after(0.05) as scope:
                async with client.stream("GET", url) as answer:
                    async for _ in answer:
                        pass
            assert scope.cancelled_caught
            assert (await client.request("GET", f"{url}/end")).body == b"end"


async def _dividing(client: SafeClient, url: str) -> None:
    async with client.stream("GET", url) as answer:
        async for piece in answer:
            assert len(piece) / 0


async def test_each_hops_names_are_looked_up_under_the_one_deadline() -> None:
    names = Names.local("a_example")
    with web_server({"/": redirect("/")}) as server:
        async with client_of(policy("a.example", redirects=1_000_000), names) as client:
            with pytest.raises(DeadlineExceeded):
                await client.request("GET", f"http://a.example:{server.port}/", follow=True, deadline=0.3)
        assert len(names.asked) > 1
