"""Credentials: put in when a request is sent, to its origin, and never shown (CASES OTEL-03)."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from engine.actions import resolve_actions
from engine.api.calling import prepared
from engine.api.dry_run import dry_run
from engine.api.masking import Masker
from engine.api.operation import Operation
from engine.api.origins import origin_of, stated_origin
from engine.api.row_config import problems_of
from engine.arguments import Resolved
from engine.request_settings import request_settings
from engine.rows import ToolRow
from engine.tools.api_tool import ApiTool
from events.errors import Refused
from tests.engine.api.calls import result_of_call
from tests.engine.api.raw_server import answer, raw_server

__all__ = ()

pytestmark = pytest.mark.anyio
SECRET = "zq-7Hf2-secret"
OAUTH = {"in": "oauth2", "client_id": "i", "client_secret": "k", "token_url": "https://a.example"}


async def test_where_credentials_go() -> None:
    key = {"secret": "key"}
    with raw_server() as server:
        for injection, credentials, sent in (
            ({"in": "header", "name": "X-API-Key", **key}, {"key": SECRET}, ("x-api-key", SECRET)),
            ({"in": "header", "name": "X-K", "prefix": "Key ", **key}, {"key": 12345}, ("x-k", "Key 12345")),
            ({"in": "bearer", **key}, {"key": SECRET}, ("authorization", f"Bearer {SECRET}")),
            ({"in": "cookie", "name": "s", **key}, {"key": "a;b"}, ("cookie", "s=a%3Bb")),
            (
                {"in": "basic"},
                {"username": "é", "password": "p:q"},
                ("authorization", f"Basic {b64encode('é:p:q'.encode()).decode()}"),
            ),
            (
                {"in": "basic"},
                {"username": SECRET},
                ("authorization", f"Basic {b64encode(f'{SECRET}:'.encode()).decode()}"),
            ),
        ):
            await result_of_call({"url": server.origin, "security": [injection]}, credentials=credentials)
            assert server.last.header(sent[0]) == sent[1]
        action = {
            "url": f"{server.origin}/{{t}}/x?a=1",
            "security": [{"in": "path", "name": "t", **key}, {"in": "query", "name": "k=", **key}],
        }
        await result_of_call(action, credentials={"key": "a/b ?&"})
        assert server.last.target == "/a%2Fb%20%3F%26/x?a=1&k%3D=a%2Fb%20%3F%26"


async def test_a_call_whose_credential_cannot_be_sent_is_not_sent() -> None:
    key = {"secret": "key"}
    cases: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({"in": "bearer", **key}, {}, '"key"'),
        ({"in": "bearer", **key}, {"key": ""}, '"key"'),
        ({"in": "basic"}, {"password": SECRET}, '"username"'),
        ({"in": "basic"}, {"username": f"{SECRET}:", "password": "x"}, "colon"),
        ({"in": "bearer", **key}, {"key": f"{SECRET}\r\nX: y"}, "Authorization"),
        ({"in": "header", "name": "X-K", **key}, {"key": f"{SECRET}日"}, "X-K"),
        ({"in": "path", "name": "t", **key}, {"key": ".."}, "path"),
        ({"in": "bearer", **key}, {"key": SECRET, "url": "https://evil.example/"}, '"url"'),
        ({"in": "bearer", **key}, {"key": SECRET, "query_params": SECRET}, '"query_params"'),
    ]
    with raw_server() as server:
        for injection, credentials, said in cases:
            action = {"url": f"{server.origin}/{{t}}", "query_params": {"properties": {"t": {}}}}
            given = {} if injection["in"] == "path" else {"t": "x"}
            result = await result_of_call({**action, "security": [injection]}, given, credentials=credentials)
            assert result.data["status_code"] is None
            assert said in result.data["message"]
            assert SECRET not in repr(result)
        assert server.received == []


async def test_a_credential_is_not_sent_on_by_a_redirect() -> None:
    with raw_server() as server, raw_server() as other:
        server.answers = [answer(b"", 307, None, Location=f"{other.origin}/?k={SECRET}")]
        action = {"url": server.origin, "security": [{"in": "bearer", "secret": "key"}]}
        result = await result_of_call(action, credentials={"key": SECRET})
        assert result.data["location"] == f"{other.origin}/?k=***"
        assert other.received == []


def test_nothing_shows_a_credential() -> None:
    config = {"url": "https://h.example/{t}", "auth_credentials": {"key": SECRET}}
    security = [{"in": "path", "name": "t", "secret": "key"}, {"in": "bearer", "secret": "key"}]
    call = prepared({**config, "security": security}, {}, None)
    assert SECRET in call.parts.url
    assert SECRET not in repr([call, call.parts, call.masker, call.request, call.operation, call.request.preview()])


def test_what_is_masked() -> None:
    masker = Masker({"key": SECRET, "number": 123456, "short": "abc"})
    assert masker.value({SECRET: [f"x{SECRET}y", {"a": b64encode(SECRET.encode()).decode()}], "n": "no. 123456"}) == {
        "***": ["x***y", {"a": "***"}],
        "n": "no. ***",
    }
    assert masker.text("abc") == "abc"
    assert masker.occurs_in(b"\xff" + SECRET.encode())
    assert not masker.occurs_in(b"\xff")
    given = {"a": [SECRET]}
    masker.value(given)
    assert given == {"a": [SECRET]}


def test_a_secret_that_stands_in_the_configuration_is_a_problem() -> None:
    fixed = {"filled_by_llm": False, "value": "canary"}
    for action, named in (
        ({"url": "https://h.example/?api_key=canary&page=1"}, "api_key"),
        ({"url": "https://h.example/", "headers": {"properties": {"X-API-Key": fixed, "X-Page": fixed}}}, "X-API-Key"),
        ({"url": "https://h.example/", "query_params": {"properties": {"password": fixed}}}, "password"),
        ({"url": "https://h.example/", "security": [OAUTH | {"token_url": "https://a.example?sig=canary"}]}, "sig"),
    ):
        [problem] = problems_of({"actions": {"act": action}})
        assert f'"{named}" sounds like a secret' in problem
        assert "canary" not in problem
    asked = {"properties": {"api_key": {"type": "string"}}}
    templated = {"url": "https://h.example/?api_key={api_key}", "query_params": asked}
    assert problems_of({"actions": {"act": templated}}) == []


async def test_a_credential_goes_only_to_the_origins_that_its_owner_trusts() -> None:
    bearer = [{"in": "bearer", "secret": "key"}]
    with raw_server() as server:
        for trusted, security, is_sent in (
            (None, bearer, True),
            ([server.origin], bearer, True),
            ([f"HTTP://127.0.0.1:{server.port}/"], bearer, True),
            (["https://api.example", server.origin], bearer, True),
            ([], bearer, False),
            (["https://api.example"], bearer, False),
            ([server.origin.replace("http:", "https:")], bearer, False),
            (["http://127.0.0.1"], bearer, False),
            (["http://127.0.0.1:1"], bearer, False),
            ([], [], True),
        ):
            server.received = []
            action = {"url": f"{server.origin}/x", "security": security, "trusted_origins": trusted}
            result = await result_of_call(action, credentials={"key": SECRET})
            assert (len(server.received) == 1) is is_sent, trusted
            if not is_sent:
                assert result.status == "error"
                assert result.data["message"].startswith(f"The tool's credentials are not for {server.origin}: nothing")
                assert SECRET not in repr(result)


def test_the_row_says_which_origins_are_trusted_not_its_actions() -> None:
    action = {"url": "https://files.example/x", "trusted_origins": ["https://files.example"]}
    config = {"security": [{"in": "bearer", "secret": "key"}], "trusted_origins": ["https://api.example"]}
    row = ToolRow(id="t1", name="api_tool", user_id="u", config={**config, "actions": {"act": action}})
    (known,) = resolve_actions(row, ApiTool, None)
    assert request_settings(row, known, Resolved())["trusted_origins"] == ["https://api.example"]
    with pytest.raises(Refused, match=r"not for https://files\.example"):
        dry_run(row, "act", {})


def test_origins_are_compared_as_the_client_reads_them() -> None:
    for url, origin in (
        ("https://API.example:443/v1?x=http://other.example", "https://api.example"),
        ("http://api.example:80", "http://api.example"),
        ("http://api.example:8080/", "http://api.example:8080"),
        ("https://api.example./", "https://api.example"),
        ("https://b\u00fccher.example/", "https://xn--bcher-kva.example"),
        ("https://[::1]:8443/", "https://[::1]:8443"),
        ("https://api.example:0443/{dock}?a={b}", "https://api.example"),
    ):
        assert origin_of(url) == origin
        # What is checked is what is sent.
        assert Operation.of({"url": url}).origin == origin
    for none in ("", "api.example", "ftp://api.example", "https://", "https://me@api.example", "https://a b", 7, None):
        with pytest.raises(Refused):
            stated_origin(none)
    odd = ("good.example\\x", "good.example\\.evil.example", "g%6fod.example", "good.example%2eevil", "good.example ")
    for host in (*odd, "good.example;x", "*.example", "[::1%25eth0]", "\u24d6ood.example", "a.example:0"):
        for refusing in (
            lambda url: Operation.of({"url": url}),
            stated_origin,
            lambda url: Operation.of({"url": "https://a.example", "security": [OAUTH | {"token_url": url}]}),
        ):
            with pytest.raises(Refused):
                refusing(f"https://{host}")
    more = ["https://api.example/v1", "https://api.example?x", "https://api.example#x", "https://good.example\\@evil"]
    problems = problems_of({"trusted_origins": more, "actions": {}})
    assert [problem.rpartition(" is no origin")[0] for problem in problems] == [
        f'trusted_origins: "{each}"' for each in more
    ]
