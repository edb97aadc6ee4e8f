"""MCP's clients keep to the same policy, and a response of theirs has an end too."""

from __future__ import annotations

import gzip
import logging
from contextlib import aclosing
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx2
import pytest

from engine.net import BadResponse, DeadlineExceeded, NetError, ResponseTooLarge, Unreachable, UnsafeUserUrlError
from engine.net.transport2 import client_factory
from tests.engine.net.authority import made_authority
from tests.engine.net.names import LOCAL, Names, policy
from tests.engine.web_server import endless, raw, redirect, text, web_server

__all__ = ()

pytestmark = pytest.mark.anyio


async def test_case_api_02_the_connection_goes_to_the_address_that_was_judged(tmp_path: Path) -> None:
    authority = made_authority(tmp_path, "safe.example")
    names = Names.local("safe_example", "other_example")
    names.answers["rebind.example"] = [[LOCAL], ["10.0.0.1"]]
    with web_server({"/": text("hello")}, keeps_alive=True) as plain:
        async with client_factory(policy("127.0.0.0/8"), names)(headers={"Host": "x"}) as client:
            url = f"http://rebind.example:{plain.port}/"
            assert (await client.get(url)).text == "hello"
            with pytest.raises(UnsafeUserUrlError):
                await client.get(url)
            for _ in range(2):
                assert (await client.get(f"http://safe.example:{plain.port}/")).text == "hello"
            with pytest.raises(Unreachable):
                await client.get("http://gone.example/")
        assert plain.asked[0].headers["host"] == f"rebind.example:{plain.port}"
        assert plain.asked[1].port == plain.asked[2].port
    with web_server({"/": text("hello")}, authority.server) as server:
        factory = client_factory(policy("safe.example", "other.example"), names, authority.client)
        async with factory() as client:
            assert (await client.get(f"https://safe.example:{server.port}/")).text == "hello"
            with pytest.raises(httpx2.ConnectError, match="its certificate is not trusted"):
                await client.get(f"https://other.example:{server.port}/")


async def test_case_api_01_redirects_are_left_to_the_caller_and_judged_like_any_url() -> None:
    with web_server({"/a": redirect("http://10.0.0.1/")}) as server:
        async with client_factory(policy(LOCAL))(follow_redirects=True) as client:
            response = await client.get(f"http://127.0.0.1:{server.port}/a")
            assert response.status_code == 302
            assert response.next_request is not None
            with pytest.raises(UnsafeUserUrlError):
                await client.send(response.next_request)


async def test_a_body_comes_unpacked_and_no_larger_than_allowed() -> None:
    packed = gzip.compress(bytes(3000))
    pages = {
        "/packed": raw(packed, Content_Encoding="gzip"),
        "/large": raw(bytes(3001)),
        "/bomb": raw(gzip.compress(bytes(1_000_000)), Content_Encoding="gzip"),
        "/endless": endless(b"x" * 4096),
        "/broken": raw(b"no gzip", Content_Encoding="gzip"),
        "/br": raw(b"x", Content_Encoding="br"),
    }
    with web_server(pages) as server:
        async with client_factory(policy(LOCAL, largest=3000))(headers={"Accept-Encoding": "br"}) as client:
            response = await client.get(f"http://127.0.0.1:{server.port}/packed")
            assert response.content == bytes(3000)
            assert not {"content-encoding", "content-length"} & set(response.headers)
            for path in ("/large", "/bomb", "/endless"):
                # MCP's client takes the second for a failed call, and lives on.
                with pytest.raises(ResponseTooLarge, match="larger than 3000 bytes") as caught:
                    await client.get(f"http://127.0.0.1:{server.port}{path}")
                assert isinstance(caught.value, httpx2.StreamError)
            for path in ("/broken", "/br"):
                with pytest.raises(BadResponse) as broken:
                    await client.get(f"http://127.0.0.1:{server.port}{path}")
                assert isinstance(broken.value, httpx2.StreamError)
    assert {asked.headers["accept-encoding"] for asked in server.asked} == {"gzip"}


async def test_an_event_stream_may_go_on_and_be_left() -> None:
    pages = {"/": endless(b"data: x\n\n" * 100, Content_Type="text/event-stream"), "/end": text("end")}
    with web_server(pages) as server:
        async with client_factory(policy(LOCAL, largest=1000, connections=1))() as client:
            url = f"http://127.0.0.1:{server.port}"
            async with client.stream("GET", url) as response:
                got = 0
                async with aclosing(response.aiter_raw()) as pieces:
                    while got < 100_000:
                        got += len(await anext(pieces))
            assert (await client.get(f"{url}/end")).text == "end"


def _silent(begun: bytes, request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(begun)
    request.wfile.flush()
    request.connection.settimeout(10)
    request.rfile.read(1)
    request.close_connection = True


async def test_the_deadline_holds_from_the_look_up_to_the_end_of_the_body() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx"
    with web_server({"/none": partial(_silent, b""), "/drip": partial(_silent, head)}) as server:
        async with client_factory(policy(LOCAL, deadline=0.2))() as client:
            for path in ("/none", "/drip"):
                with pytest.raises(DeadlineExceeded, match=r"^it took longer than 0\.2 s$"):
                    await client.get(f"http://127.0.0.1:{server.port}{path}")


async def test_case_otel_03_no_secret_is_in_an_error_or_a_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password zq-7Hf2-secret")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with web_server({}) as server:
        server.pages["/?k=zq-7Hf2-secret"] = raw(b"x", "text/plain", 200, X_Echo="zq-7Hf2-secret")
        async with client_factory(policy(LOCAL))(headers={"X-API-Key": "zq-7Hf2-secret"}) as client:
            await client.get(f"http://127.0.0.1:{server.port}/?k=zq-7Hf2-secret")
            said = []
            for url, headers in (
                (f"http://127.0.0.1:{server.port}/", {"X": "zq-7Hf2-secret\n"}),
                ("http://127.0.0.1:1/?k=zq-7Hf2-secret", {}),
                ("http://me:zq-7Hf2-secret@127.0.0.1/", {}),
            ):
                with pytest.raises((NetError, httpx2.TransportError)) as caught:
                    await client.get(url, headers=headers)
                said.append(repr(caught.value))
    assert "authorization" not in server.asked[0].headers
    assert [each for each in caplog.messages if each.startswith("HTTP Request: GET http://127.0.0.1")]
    assert [each for each in [*said, *caplog.messages] if "zq-7Hf2" in each] == []
