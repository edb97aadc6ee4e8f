"""Redirects: each is judged anew, none takes credentials elsewhere, and there is an end of them."""

from __future__ import annotations

import pytest

from engine.net import BadResponse, TooManyRedirects, Unreachable, UnsafeUserUrlError
from tests.engine.net.clients import client_of
from tests.engine.net.names import LOCAL, Names, policy
from tests.engine.web_server import redirect, text, web_server

__all__ = ()

pytestmark = pytest.mark.anyio

INWARD = {
    "http://127.0.0.1:9/x": "not_public",
    "//[::1]/x": "not_public",
    "http://169.254.169.254/": "not_public",
    "http://inward.example/": "not_public",
    "file:///etc/hostname": "scheme",
    "http://0x7f.1/": "address_spelling",
    "http://localhost/": "local_name",
    "http://me:canary@files.example/": "userinfo",
    "http://outward.example:2222/": "port",
    "http://[fe80::1%25eth0]/": "zone_id",
    "http://[::1/": "malformed",
    "http://xn--a/": "malformed",
}
QUOTES = ("127.0", "::1", "169.", "2222", "8.8", "inward", "etc", "localhost", "canary")


async def test_case_api_01_a_redirect_inward_is_not_followed() -> None:
    pages = {f"/{number}": redirect(target) for number, target in enumerate(INWARD)}
    names = Names(files_example=[[LOCAL]], inward_example=[["10.0.0.7"]], outward_example=[["8.8.8.8"]])
    with web_server(pages) as server:
        async with client_of(policy("files.example"), names) as client:
            for number, (target, reason) in enumerate(INWARD.items()):
                with pytest.raises(UnsafeUserUrlError) as caught:
                    await client.request("GET", f"http://files.example:{server.port}/{number}", follow=True)
                assert caught.value.reason == reason, target
                assert not [each for each in QUOTES if each in str(caught.value)]
        assert [asked.path for asked in server.asked] == [f"/{number}" for number in range(len(INWARD))]


async def test_case_api_01_a_redirect_to_where_nobody_is_says_nothing_of_the_place() -> None:
    pages = {"/a": redirect("http://gone.example/canary"), "/b": redirect("http://none.example:9/canary")}
    names = Names(files_example=[[LOCAL]], none_example=[[LOCAL]])
    with web_server(pages) as server:
        async with client_of(policy("files.example", "none.example"), names) as client:
            for path, said in (("/a", "there is no such host"), ("/b", "no connection to where it redirects: ")):
                with pytest.raises(Unreachable, match=f"^{said}") as caught:
                    await client.request("GET", f"http://files.example:{server.port}{path}", follow=True)
                assert "example" not in str(caught.value)


async def test_case_api_01_a_loop_stops_at_the_limit_and_each_hop_is_looked_up() -> None:
    names = Names.local("files_example", "other_example")
    with web_server({}) as server:
        there = f"http://other.example:{server.port}/b"
        server.pages |= {"/a": redirect(there), "/b": redirect(f"http://files.example:{server.port}/c")}
        server.pages |= {"/c": redirect("/c"), "/short": redirect("end"), "/end": text("end")}
        async with client_of(policy("files.example", "other.example"), names) as client:
            with pytest.raises(TooManyRedirects, match="more than 5 times"):
                await client.request("GET", f"http://files.example:{server.port}/a", follow=True)
            assert [asked.path for asked in server.asked] == ["/a", "/b", "/c", "/c", "/c", "/c"]
            assert names.asked == ["files.example", "other.example", *["files.example"] * 4]
            reply = await client.request("GET", f"http://files.example:{server.port}/short", follow=True)
            assert (reply.hops, reply.url) == (1, f"http://files.example:{server.port}/end")
        async with client_of(policy("files.example", redirects=0), names) as client:
            with pytest.raises(TooManyRedirects):
                await client.request("GET", f"http://files.example:{server.port}/c", follow=True)
            reply = await client.request("GET", f"http://files.example:{server.port}/c")
            assert (reply.status, reply.header("Location")) == (302, "/c")


REWRITTEN = {301: ("POST",), 302: ("POST",), 303: ("POST", "PUT", "DELETE"), 307: (), 308: ()}
SECRETS = {"Authorization": "Bearer canary", "Cookie": "canary=1", "X-API-Key": "canary", "X-Trace": "kept"}


async def test_case_api_01_credentials_are_dropped_across_origins_and_stay_dropped() -> None:
    names = Names.local("a_example", "b_example")
    with web_server({"/again": redirect("/end"), "/end": text("end")}) as first, web_server({}) as second:
        back = f"http://a.example:{first.port}/end"
        first.pages |= {"/b": redirect(f"http://b.example:{first.port}/end")}
        first.pages |= {"/port": redirect(f"http://a.example:{second.port}/back")}
        second.pages |= {"/back": redirect(back)}
        hosts = policy("a.example", "b.example")
        async with client_of(hosts, names) as client:
            for path in ("/again", "/b", "/port"):
                url = f"http://a.example:{first.port}{path}"
                reply = await client.request(
                    "GET", url, headers=SECRETS, follow=True, secret_headers=frozenset({"x-api-KEY"})
                )
                assert reply.body == b"end"
    carried = [{name for name in SECRETS if name.lower() in asked.headers} for asked in first.asked]
    assert carried == [set(SECRETS), set(SECRETS), set(SECRETS), {"X-Trace"}, set(SECRETS), {"X-Trace"}]
    assert [set(asked.headers) & {"authorization", "cookie", "x-api-key"} for asked in second.asked] == [set()]


async def test_the_method_is_rewritten_as_rfc_9110_says() -> None:
    rows = [(status, method) for status in REWRITTEN for method in ("GET", "HEAD", "POST", "PUT", "DELETE")]
    with web_server({f"/{status}": redirect("/end", status) for status in REWRITTEN}) as server:
        server.pages["/end"] = text("end")
        async with client_of(policy(LOCAL)) as client:
            for status, method in rows:
                expected = "GET" if method in REWRITTEN[status] else method
                content = b"body" if method in ("POST", "PUT") else None
                headers = {"Content-Type": "text/plain", "X-Own": "1"}
                url = f"http://127.0.0.1:{server.port}/{status}"
                await client.request(method, url, headers=headers, content=content, follow=True)
                asked = server.asked[-1]
                kept = content if expected == method else None
                assert (asked.method, asked.body) == (expected, kept or b""), (status, method)
                assert ("content-type" in asked.headers) is (expected == method)
                assert asked.headers["x-own"] == "1"


async def test_a_body_is_not_sent_to_another_origin() -> None:
    names = Names.local("a_example", "b_example")
    with web_server({}) as server:
        there = f"http://b.example:{server.port}/end"
        server.pages |= {"/307": redirect(there, 307), "/303": redirect(there, 303), "/end": text("end")}
        async with client_of(policy("a.example", "b.example"), names) as client:
            with pytest.raises(BadResponse, match="redirects a request with a body to another host"):
                await client.request("POST", f"http://a.example:{server.port}/307", content=b"canary", follow=True)
            reply = await client.request("POST", f"http://a.example:{server.port}/303", content=b"canary", follow=True)
            assert reply.body == b"end"
    assert [asked.body for asked in server.asked] == [b"canary", b"canary", b""]


async def test_a_redirect_to_nowhere_is_an_error() -> None:
    with web_server({"/a": redirect(None)}) as server:
        async with client_of(policy(LOCAL)) as client:
            with pytest.raises(BadResponse, match="no target"):
                await client.request("GET", f"http://127.0.0.1:{server.port}/a", follow=True)


async def test_a_connection_stays_warm_over_redirects() -> None:
    with web_server({"/a": redirect("/b"), "/b": text("end")}, keeps_alive=True) as server:
        async with client_of(policy(LOCAL)) as client:
            for _ in range(2):
                await client.request("GET", f"http://127.0.0.1:{server.port}/a", follow=True)
        assert len({asked.port for asked in server.asked}) == 1
