"""No secret of a request, and nothing of a response, is in an error's text or in a log."""

from __future__ import annotations

import logging
import traceback

import pytest

from engine.net import NetError
from tests.engine.net.clients import client_of
from tests.engine.net.names import LOCAL, Names, policy
from tests.engine.web_server import endless, raw, redirect, web_server

__all__ = ()

pytestmark = pytest.mark.anyio

SECRET = "zq-7Hf2-secret"
HEADERS = {"X-API-Key": SECRET, "Authorization": f"Bearer {SECRET}"}


async def test_case_otel_03_a_requests_secrets_are_in_no_error_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    pages = {
        f"/{SECRET}?k={SECRET}": raw(SECRET.encode(), "text/plain", 401),
        f"/gzip?k={SECRET}": raw(SECRET.encode(), Content_Encoding="gzip"),
        f"/endless?k={SECRET}": endless(SECRET.encode()),
        f"/loop?k={SECRET}": redirect(f"/loop?k={SECRET}"),
        f"/in?k={SECRET}": redirect(f"http://10.0.0.1/{SECRET}?k={SECRET}"),
        f"/user?k={SECRET}": redirect(f"http://{SECRET}:{SECRET}@a.example/"),
        f"/ftp?k={SECRET}": redirect(f"{SECRET.replace('-', '')}://a.example/"),
        f"/short?k={SECRET}": raw(SECRET.encode(), Content_Length="100"),
    }
    with web_server(pages) as server:
        origin = f"http://a.example:{server.port}"
        urls = [f"{origin}{path}" for path in pages]
        urls += [
            f"http://none.example/{SECRET}?k={SECRET}",
            f"http://me:{SECRET}@a.example/",
            f"http://[{SECRET}]/?{SECRET}",
        ]
        urls += [f"http://a.example:1/?k={SECRET}", f"https://a.example:{server.port}/?k={SECRET}"]
        said = []
        async with client_of(policy("a.example", largest=10_000), Names.local("a_example")) as client:
            for url in urls:
                try:
                    reply = await client.request("GET", url, headers=HEADERS, follow=True)
                except NetError as error:
                    said += [str(error), repr(error), "".join(traceback.format_exception(error))]
                else:
                    said.append(repr(reply))
            with pytest.raises(NetError) as caught:
                await client.request("GET", origin, headers={"X": f"{SECRET}\n"})
            said += [repr(caught.value), *traceback.format_exception(caught.value), repr(client)]
    assert len(said) > 3 * len(urls) - 5
    assert [each for each in said if SECRET in each] == []
    assert "receive_response_headers.complete" in caplog.messages
    assert [each for each in caplog.messages if SECRET in each] == []


async def test_a_proxy_of_the_environment_learns_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with web_server({}) as proxy, web_server({"/": raw(b"direct")}) as server:
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        async with client_of(policy(LOCAL)) as client:
            assert (await client.request("GET", f"http://127.0.0.1:{server.port}/")).body == b"direct"
        assert proxy.asked == []
