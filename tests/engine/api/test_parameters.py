"""Queries, cookies and headers from arguments (CASES API-08, API-09)."""

from __future__ import annotations

from typing import Any

import pytest

from engine.api.headers import RESERVED
from engine.api.operation import Operation
from events.errors import Refused
from tests.engine.api.calls import built, refused, result_of_call
from tests.engine.api.raw_server import RawServer, raw_server

__all__ = ()

pytestmark = pytest.mark.anyio
ANY: dict[str, Any] = {}


def query(wire: dict[str, Any] | None, value: Any) -> str:
    """Return the query that one argument ``k`` makes."""
    action: dict[str, Any] = {"query_params": {"properties": {"k": ANY}}}
    if wire is not None:
        action["wire"] = {"query_params": {"k": wire}}
    return built(action, {"k": value}).query


def test_query_styles() -> None:
    listed, shaped = [1, None, "a,b", "c d"], {"R": 100, "g": None, "B": [1, 2]}
    for wire, value, sent in (
        (None, "a&b c+é", "k=a%26b%20c%2B%C3%A9"),
        (None, True, "k=true"),
        (None, 1.5, "k=1.5"),
        (None, "", "k="),
        (None, None, ""),
        (None, [], ""),
        (None, listed, "k=1&k=a%2Cb&k=c%20d"),
        (None, shaped, "R=100&B=%5B1%2C2%5D"),
        ({"explode": False}, listed, "k=1,a%2Cb,c%20d"),
        ({"explode": False}, [], ""),
        ({"explode": False}, shaped, "k=R,100,B,%5B1%2C2%5D"),
        ({"style": "form", "explode": True}, listed, "k=1&k=a%2Cb&k=c%20d"),
        ({"style": "spaceDelimited"}, listed, "k=1%20a%2Cb%20c%20d"),
        ({"style": "pipeDelimited", "explode": False}, listed, "k=1%7Ca%2Cb%7Cc%20d"),
        ({"style": "pipeDelimited", "explode": True}, listed, "k=1&k=a%2Cb&k=c%20d"),
        (
            {"style": "deepObject"},
            {"a": 1, "b": {"c": [1, 2], "d": None}},
            "k%5Ba%5D=1&k%5Bb%5D%5Bc%5D=1&k%5Bb%5D%5Bc%5D=2",
        ),
        ({"style": "deepObject", "explode": True}, "x", "k=x"),
        ({"contentType": "application/json"}, {"a": [True, None]}, "k=%7B%22a%22%3A%5Btrue%2Cnull%5D%7D"),
        ({"name": "filter[x]"}, 1, "filter%5Bx%5D=1"),
    ):
        assert query(wire, value) == sent, (wire, value)
    deep: Any = 1
    for _ in range(30):
        deep = {"a": deep}
    for style, value, said in (("deepObject", deep, "deeply"), ("matrix", 1, "matrix")):
        styled = {"query_params": {"k": {"style": style}}}
        assert said in refused({"query_params": {"properties": {"k": ANY}}, "wire": styled}, {"k": value})


async def test_case_api_08_one_name_in_four_places() -> None:
    with raw_server() as server:
        action = {
            "url": f"{server.origin}/docks/{{id}}",
            "method": "put",
            "query_params": {"properties": {"id": ANY, "id_query": ANY, "body": ANY, "id_cookie": ANY}},
            "headers": {"properties": {"id_header": ANY}},
            "body": {"properties": {"id_body": ANY, "name": ANY}},
            "wire": {
                "query_params": {
                    "id_query": {"name": "id", "in": "query"},
                    "id_cookie": {"name": "id", "in": "cookie"},
                },
                "headers": {"id_header": {"name": "id"}},
                "body": {"id_body": {"name": "id"}},
            },
        }
        given = {"id": 1, "id_query": 2, "id_header": 3, "id_body": 4, "name": "n", "body": "b", "id_cookie": "5; x=y"}
        kept = dict(given)
        await result_of_call(action, given)
        assert given == kept
        last = server.last
        assert (last.method, last.target) == ("PUT", "/docks/1?id=2&body=b")
        assert (last.header("id"), last.body) == ("3", b'{"id":4,"name":"n"}')
        assert last.header("cookie") == "id=5%3B%20x%3Dy"
        # One name in two groups is one argument, and goes to both places.
        both = {"url": server.origin, "method": "POST", "query_params": {"properties": {"a": ANY}}}
        await result_of_call({**both, "body": {"properties": {"a": ANY}}}, {"a": 7})
        assert (server.last.query, server.last.body) == ("a=7", b'{"a":7}')


async def test_case_api_08_bodies_that_are_no_objects_and_no_body() -> None:
    with raw_server() as server:
        whole = {"url": server.origin, "method": "POST", "body_whole": "items", "body": {"properties": {"items": ANY}}}
        for value, sent in (
            ([1, {"a": None}], b'[1,{"a":null}]'),
            ([], b"[]"),
            ({}, b"{}"),
            ("text", b'"text"'),
            (0, b"0"),
            (False, b"false"),
            (None, b"null"),
        ):
            await result_of_call(whole, {"items": value})
            assert (server.last.body, server.last.header("content-type")) == (sent, "application/json")
        for method in ("GET", "HEAD", "DELETE", "OPTIONS", "POST", "PUT", "PATCH"):
            for action in ({"method": method}, {**whole, "method": method}):
                await result_of_call({"url": server.origin, **action})
                assert (server.last.method, server.last.body) == (method, b"")
                assert (server.last.header("content-type"), server.last.header("transfer-encoding")) == (None, None)
                assert server.last.header("content-length") == ("0" if method in ("POST", "PUT", "PATCH") else None)


async def header(server: RawServer, value: Any, name: str = "X-Ref", **action: Any) -> Any:
    """Return what a call with one header brings."""
    definition = {"url": server.origin, "headers": {"properties": {name: ANY}}, **action}
    return (await result_of_call(definition, {name: value}, credentials={"key": "zq-7Hf2-secret"})).data


async def test_case_api_09_what_no_header_can_carry_is_refused_before_anything_is_sent() -> None:
    with raw_server() as server:
        for value in ("ok\r\nX-Admin: 1", "ok\n b", "\u0000", "a\rb", "a\x7fb", "日本", "x" * 100_000, ["a", "b\r\n"]):
            result = await header(server, value)
            assert result["status_code"] is None
            assert "X-Ref" in result["message"]
            assert "Admin" not in result["message"]
        assert server.received == []
        sound: list[tuple[Any, str | None]] = [
            ("Ørsted", "Ørsted"),
            (" lead ", "lead"),
            (True, "true"),
            ([1, "b"], "1,b"),
            ({"a": 1, "b": None}, "a,1"),
            ("", None),
            (None, None),
            ("a\tb", "a\tb"),
        ]
        for value, sent in sound:
            await header(server, value)
            assert server.last.header("x-ref") == sent
            assert [name for name, _ in server.last.headers if name.startswith("x-")] == ["x-ref"] * (sent is not None)


async def test_case_api_09_headers_that_are_not_an_arguments_to_set() -> None:
    key = {"in": "header", "secret": "key", "name": "X-API-Key"}
    with raw_server() as server:
        for name in (*RESERVED, "Authorization", "HOST", "Content-Length", "Transfer-Encoding", "Cookie"):
            assert name in (await header(server, "chunked", name))["message"]
        for name in ("X-API-Key", "x-api-key"):
            message = (await header(server, "mine", name, security=[key]))["message"]
            assert name in message
            assert "zq-7Hf2" not in message
        own = await header(server, "x", "Idempotency-Key", idempotency_header="idempotency-key")
        assert "Idempotency-Key" in own["message"]
        assert "no name" in (await header(server, "x", "X Y"))["message"]
        assert "no name" in (await header(server, "x", "X:\r\nY"))["message"]
        assert server.received == []
        # Nor is a credential in a query, a cookie or the path.
        for place in ("query", "cookie", "path"):
            wire = {"query_params": {"a": {"name": "token", "in": place}}}
            injection = {"in": place, "secret": "key", "name": "token"}
            url = "https://h.example/" + "{token}" * (place == "path")
            action = {"url": url, "query_params": {"properties": {"a": ANY}}}
            message = refused({**action, "wire": wire, "security": [injection]}, {"a": "mine"})
            assert "credential" in message
        # An object's keys become names of their own.
        spread = {
            "query_params": {"properties": {"o": ANY}},
            "security": [{"in": "query", "secret": "key", "name": "token"}],
        }
        assert "token" in refused(spread, {"o": {"token": "mine"}})
        # A body's content type is the body's.
        typed = {"method": "POST", "headers": {"properties": {"Content-Type": ANY}}, "body": {"properties": {"b": ANY}}}
        await result_of_call({"url": server.origin, **typed}, {"Content-Type": "text/html", "b": 1})
        assert server.last.header("content-type") == "application/json"


def test_an_object_sets_no_parameter_that_is_not_its_own() -> None:
    group = {"properties": {"o": ANY, "account": {"filled_by_llm": False, "value": "7"}, "kind": ANY}}
    action = {"url": "https://h.example/?site=1", "query_params": group}
    assert built(action, {"o": {"color": "red", "o": 1}}).query == "site=1&color=red&o=1&account=7"
    for key in ("account", "site"):
        assert f'"o" cannot hold "{key}"' in refused(action, {"o": {key: "9"}})
    renamed = {"kind": {"name": "type"}}
    assert '"type"' in refused({**action, "wire": {"query_params": renamed}}, {"o": {"type": "9"}})
    form = {"method": "POST", "body": group, "body_content_type": "application/x-www-form-urlencoded"}
    spread = {**form, "body_encoding_rules": {"o": {"style": "form"}}}
    assert built(spread, {"o": {"color": "red"}}).content == b"color=red&account=7"
    assert '"account"' in refused(spread, {"o": {"account": "9"}})


def test_what_an_operation_cannot_be() -> None:
    for change, said in (
        ({"method": "TRACE"}, "Unsupported HTTP method: TRACE"),
        ({"method": 7}, "Unsupported HTTP method: 7"),
        ({"security": [{"in": "nowhere", "secret": "k"}]}, "nowhere"),
        ({"security": [{"in": "header", "secret": "k"}]}, "name"),
        ({"security": [{"in": "bearer"}]}, "secret"),
        ({"security": [{"in": "path", "secret": "k", "name": "x"}]}, "{x}"),
        ({"wire": {"query_params": {"a": {"style": "odd"}}}}, "odd"),
        ({"project": "a["}, "JMESPath"),
        ({"body_encoding_rules": 3}, "body_encoding_rules"),
        ({"url": None}, "url"),
    ):
        with pytest.raises(Refused) as raised:
            Operation.of({"url": "https://h.example/", **change})
        assert said in str(raised.value)
    gone = {"query_params": {"a": {"name": "gone", "in": "path"}}}
    assert "{gone}" in refused({"query_params": {"properties": {"a": ANY}}, "wire": gone}, {"a": 1})
