"""The connection goes to what was judged, and stays warm only for what is judged the same again."""

from __future__ import annotations

import re
import socket
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import anyio
import pytest

from engine.net import BadResponse, NetError, NetPolicy, Unreachable, UnsafeUserUrlError
from tests.engine.net.authority import made_authority
from tests.engine.net.clients import client_of
from tests.engine.net.names import LOCAL, Names, policy
from tests.engine.web_server import WebServer, raw, text, web_server

__all__ = ()

pytestmark = pytest.mark.anyio


async def test_case_api_02_the_connection_goes_to_the_address_that_was_judged() -> None:
    names = Names(rebind_example=[[LOCAL], ["127.9.9.9"]])
    with web_server({"/": text("hello")}) as server:
        url = f"http://rebind.example:{server.port}/"
        async with client_of(policy("127.0.0.1/32"), names) as client:
            reply = await client.request("GET", f"{url}#part")
            assert (reply.body, reply.url, reply.hops) == (b"hello", url, 0)
            assert names.asked == ["rebind.example"]
            assert server.asked[0].headers["host"] == f"rebind.example:{server.port}"
            with pytest.raises(UnsafeUserUrlError):
                await client.request("GET", url)
            assert len(server.asked) == 1
            assert names.asked == ["rebind.example"] * 2


async def test_case_api_02_a_warm_connection_is_no_way_past_the_judgement() -> None:
    names = Names(x_example=[[LOCAL], [LOCAL], ["127.0.0.2", LOCAL], ["10.0.0.1"], [LOCAL]], y_example=[[LOCAL]])
    with web_server({"/": text("hello")}, keeps_alive=True) as server:
        async with client_of(policy("127.0.0.0/8"), names) as client:
            for _ in range(3):
                await client.request("GET", f"http://x.example:{server.port}/")
            with pytest.raises(UnsafeUserUrlError):
                await client.request("GET", f"http://x.example:{server.port}/")
            await client.request("GET", f"http://x.example:{server.port}/")
            await client.request("GET", f"http://y.example:{server.port}/")
        first, again, other_set, back, other_name = [asked.port for asked in server.asked]
        assert first == again == back
        assert len({first, other_set, other_name}) == 3
        assert [asked.headers["host"].partition(".")[0] for asked in server.asked] == ["x"] * 4 + ["y"]


async def test_case_api_02_tls_is_checked_against_the_name_in_the_url(tmp_path: Path) -> None:
    authority = made_authority(tmp_path, "safe.example")
    names = Names.local("safe_example", "other_example")
    allowed = policy("safe.example", "other.example")
    seen: list[str | None] = []
    authority.server.sni_callback = lambda _socket, name, _context: seen.append(name)
    with web_server({"/": text("hello")}, authority.server, keeps_alive=True) as server:
        async with client_of(allowed, names, authority.client) as client:
            for host in ("safe.example", "safe.example.", "SAFE.example"):
                assert (await client.request("GET", f"https://{host}:{server.port}/")).body == b"hello"
            # It is at the same address, with a warm connection: that one showed another name.
            with pytest.raises(Unreachable, match=r"no connection to other\.example: its certificate is not trusted"):
                await client.request("GET", f"https://other.example:{server.port}/")
        async with client_of(allowed, names) as client:
            with pytest.raises(Unreachable, match=r"no connection to safe\.example: its certificate is not trusted"):
                await client.request("GET", f"https://safe.example:{server.port}/")
        assert len(server.asked) == 3
        assert seen == ["safe.example", "other.example", "safe.example"]
    with web_server({"/": text("hello")}) as plain:
        async with client_of(allowed, names, authority.client) as client:
            with pytest.raises(Unreachable, match="there is no TLS with it"):
                await client.request("GET", f"https://safe.example:{plain.port}/")


async def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    with web_server({"/": text("hello")}) as server:
        for addresses in (["127.0.0.2", LOCAL], ["::1", "127.0.0.3", LOCAL]):
            async with client_of(policy("two.example"), Names(two_example=[addresses])) as client:
                assert (await client.request("GET", f"http://two.example:{server.port}/")).body == b"hello"


async def test_nobody_there_is_an_error() -> None:
    with socket.socket() as closed:
        closed.bind((LOCAL, 0))
        port = closed.getsockname()[1]
        names = Names(none_example=[[LOCAL, "127.0.0.2"]])
        async with client_of(policy("127.0.0.0/8"), names) as client:
            for host in (LOCAL, "none.example"):
                said = re.escape(f"no connection to {host}: nobody takes connections there")
                with pytest.raises(Unreachable, match=f"^{said}$"):
                    await client.request("GET", f"http://{host}:{port}/")
            with pytest.raises(Unreachable, match=r"^there is no host gone\.example$"):
                await client.request("GET", "http://gone.example/?key=1")


async def test_the_environment_plays_no_part(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password canary")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with web_server({"/": text("hello", Set_Cookie="a=b")}) as server:
        async with client_of(policy(LOCAL)) as client:
            for _ in range(2):
                assert (await client.request("GET", f"http://127.0.0.1:{server.port}/")).body == b"hello"
        usual = {"host", "user-agent", "accept", "accept-encoding", "connection"}
        assert [set(asked.headers) - usual for asked in server.asked] == [set(), set()]


async def test_what_is_sent_and_what_comes_back() -> None:
    page = raw("é".encode("latin-1"), 'Text/Plain; x=1; Charset="iso-8859-1"', 201, X_Twice="1")
    with web_server({"/a": page}, keeps_alive=True) as server:
        async with client_of(policy(LOCAL)) as client:
            headers = {"X-Own": "1", "Host": "elsewhere", "Content-Length": "9", "Transfer-Encoding": "chunked"}
            reply = await client.request("post", f"http://127.0.0.1:{server.port}/a", headers=headers, content=b"body")
            async with client.stream("GET", f"http://127.0.0.1:{server.port}/a") as answer:
                streamed = b"".join([piece async for piece in answer])
        assert (reply.status, reply.content_type, reply.charset) == (201, "text/plain", "iso-8859-1")
        assert reply.body == streamed == b"\xe9"
        assert (reply.header("x-twice"), reply.header("none")) == ("1", None)
        asked = server.asked[0]
        assert (asked.method, asked.body, asked.headers["x-own"]) == ("POST", b"body", "1")
        assert asked.headers["host"] == f"127.0.0.1:{server.port}"
        assert asked.headers["user-agent"] == NetPolicy().user_agent
        assert "transfer-encoding" not in asked.headers
        assert server.asked[1].port == asked.port


async def test_what_is_no_http_is_an_error_and_the_next_request_is_well() -> None:
    with web_server({"/": text("hello")}, keeps_alive=True) as server:
        url = f"http://127.0.0.1:{server.port}/"
        async with client_of(policy(LOCAL)) as client:
            for headers in ({"X": "canary\r\nInjected: 1"}, {"X\n": "canary"}, {"X": "canäry☃"}):
                with pytest.raises(NetError) as caught:
                    await client.request("GET", url, headers=headers)
                assert str(caught.value) == "the request holds characters that HTTP does not allow"
            with pytest.raises(NetError, match="characters"):
                await client.request("GE T", url)
            assert (await client.request("GET", url)).body == b"hello"
        assert len(server.asked) == 1


async def test_a_server_that_closes_between_requests_is_connected_to_anew() -> None:
    with web_server({"/": text("hello")}, keeps_alive=True) as server:
        async with client_of(policy(LOCAL)) as client:
            for _ in range(2):
                assert (await client.request("GET", f"http://127.0.0.1:{server.port}/")).status == 200
                server.drop_connections()
        assert len({asked.port for asked in server.asked}) == 2


async def test_no_more_connections_than_allowed_and_all_get_their_turn() -> None:
    with web_server({"/": text("hello")}, keeps_alive=True) as server:
        async with client_of(policy(LOCAL, connections=2)) as client, anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(client.request, "GET", f"http://127.0.0.1:{server.port}/")
        assert len(server.asked) == 20
        assert len({asked.port for asked in server.asked}) <= 2


async def test_what_talks_something_else_is_an_error_that_quotes_none_of_it() -> None:
    def page(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(b"-ERR canary\r\n\r\n")

    with web_server({"/": page}) as server:
        async with client_of(policy(LOCAL)) as client:
            with pytest.raises(BadResponse, match=r"^the response broke off: it is incomplete, or no HTTP$"):
                await client.request("GET", f"http://127.0.0.1:{server.port}/")


async def test_what_is_safe_to_send_twice_outlives_a_connection_that_dies_unseen() -> None:
    def dying(request: BaseHTTPRequestHandler) -> None:
        # The second request of a connection gets nothing.
        assert isinstance(request.server, WebServer)
        if [asked.port for asked in request.server.asked].count(request.client_address[1]) == 2:
            request.close_connection = True
        else:
            text("hello")(request)

    with web_server({"/": dying}, keeps_alive=True) as server:
        async with client_of(policy(LOCAL)) as client:
            url = f"http://127.0.0.1:{server.port}/"
            for _ in range(3):
                assert (await client.request("GET", url)).body == b"hello"
            with pytest.raises(BadResponse):
                await client.request("POST", url, content=b"once")
        assert [asked.method for asked in server.asked] == ["GET"] * 5 + ["POST"]
