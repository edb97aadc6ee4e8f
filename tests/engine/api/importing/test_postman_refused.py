"""What of a collection is left out or refused: each with one line that says why."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from engine.api.importing import import_document, import_postman
from engine.api.importing.postman_collection import is_collection
from events.errors import Refused
from tests.engine.api.importing.collections import SCHEMA, collection, imported_collection, raw, request, setting

__all__ = ()

CYCLE = [{"key": "a", "value": "{{b}}"}, {"key": "b", "value": "{{a}}"}]
LAUGHS = [{"key": f"v{n}", "value": f"{{{{v{n + 1}}}}}" * 10 if n < 15 else "ha" * 50} for n in range(16)]
CHAIN = [{"key": f"v{n}", "value": f"{{{{v{n + 1}}}}}"} for n in range(500)]
LEFT_OUT: list[tuple[dict[str, Any], list[dict[str, Any]], str]] = [
    (request("{{a}}/x"), CYCLE, 'its variable "a" refers to itself'),
    (request("a.example", header=[{"key": "x", "value": "{{b}}"}]), CYCLE, 'its variable "b" refers to itself'),
    (request("a.example/{{v0}}"), LAUGHS, "stands for more than 64 KiB"),
    (request("a.example/{{v0}}"), CHAIN, "more than 20 deep"),
    (request("{{host}}/x"), [], "give it, or base_url"),
    (request("{{token}}/x"), [{"key": "token", "value": "a.example"}], "which is or sounds secret"),
    (request("ftp://a.example"), [], "http and https"),
    (request("http://[a/"), [], "not valid"),
    (request("a.example:x/"), [], "not valid"),
    (request("a.example/../x"), [], '"." or ".."'),
    (request("a.example/{x"), [], "a brace"),
    (request("https:///x"), [], "no host"),
    (request(""), [], "no URL"),
    (request(None), [], "no URL"),
    (request(["a"]), [], "an array"),
    (request("a.example/\nx"), [], "control characters"),
    (request("a.example", "BREW"), [], 'the method "BREW" is not supported'),
    (request("a.example", "TRACE"), [], "not supported"),
    (request(auth={"type": "awsv4"}), [], 'it needs "awsv4" authentication, which is not supported'),
    (request(auth={"type": "digest", "digest": []}), [], "digest"),
    (request(auth={"type": "hawk"}), [], "hawk"),
    (request(auth={"type": "ntlm"}), [], "ntlm"),
    (request(auth={}), [], "without a type"),
    (request(auth=setting("apikey", value="x")), [], "no name"),
    (request(auth=setting("oauth2", grant_type="client_credentials")), [], "token"),
    (
        request(auth=setting("oauth2", grant_type="client_credentials", accessTokenUrl="https://a.example/t?sig=x")),
        [],
        "secret in its query",
    ),
    (request("a.example?token=a&token=b"), [], "several times"),
    (request(header=[{"key": "a b", "value": "x"}]), [], "no name for a header"),
    (request(header=[{"key": "X", "value": "a\r\nb"}]), [], "line break"),
    (request(header=[{"key": "X", "value": "{{nul}}"}]), [{"key": "nul", "value": "\x00"}], "control character"),
    (request(header=7), [], "a number"),
    (request(method="POST", **raw("{a}", "json")), [], "not valid JSON"),
    (request(method="POST", **raw("[" * 100 + "]" * 100, "json")), [], "levels deep"),
    (request(method="POST", **raw("[" * 5000, "json")), [], "not valid JSON"),
    (request(method="POST", **raw('"' + '\\"' * 40_000, "json")), [], "not valid JSON"),
    (request(method="POST", **raw("x" * 300_000)), [], "256 KiB"),
    (request(method="POST", body={"mode": "new"}), [], 'the mode "new"'),
    (request(method="POST", body={"mode": "graphql", "graphql": {"query": "{{q}}"}}), [], "GraphQL query"),
    (request(method="POST", body={"mode": "urlencoded", "urlencoded": [{}] * 600}), [], "at most 500"),
    ({"name": "act"}, [], "neither a request nor items"),
]


@pytest.mark.parametrize(("item", "variable", "said"), LEFT_OUT)
def test_what_cannot_be_carried_out_is_left_out_with_its_reason(
    item: dict[str, Any], variable: list[dict[str, Any]], said: str
) -> None:
    result = imported_collection(collection(request(name="good"), item, variable=variable))
    assert list(result.actions) == ["good"]
    (skipped,) = result.skipped
    assert skipped.operation.endswith("act")
    assert said in skipped.reason


def nested(depth: int) -> dict[str, Any]:
    """Return folders within folders."""
    item = request()
    for _ in range(depth):
        item = {"name": "f", "item": [item]}
    return item


REFUSED: list[tuple[Any, str]] = [
    ([], "an array"),
    ({}, "no Postman collection"),
    ({"info": {"schema": 7}}, "no Postman collection"),
    ({"id": "x", "name": "old", "order": [], "requests": []}, "export it as Collection v2.1"),
    ({"info": {"schema": SCHEMA.format("1.0.0")}}, "export it as Collection v2.1"),
    ({"info": {"schema": SCHEMA.format("3.0.0")}}, "2.0 and 2.1 are"),
    (collection(), "no items"),
    (collection(nested(40)), "more than 30 levels"),
    (collection(*[0] * 5001), "more than 5000 items"),
    (collection(request(), variable=[{"key": "a"}] * 10_001), "at most 10000"),
    (collection(request(), variable={"a": 1}), "not a list"),
    (collection(*[request(auth=setting("bearer", token=f"token-{each}")) for each in range(501)]), "500 secrets"),
]


@pytest.mark.parametrize(("content", "said"), REFUSED)
def test_what_is_no_collection_that_can_be_read_is_refused_in_one_line(content: Any, said: str) -> None:
    for read in (import_postman, import_document) if is_collection(content) else (import_postman,):
        with pytest.raises(Refused) as caught:
            read(msgspec.json.encode(content))
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)


def test_texts_that_are_no_collection_are_refused() -> None:
    for text, said in (
        ("", "empty"),
        ("[" * 100_000, "nested"),
        ("{" * 10, "not valid"),
        (b"\xff", "UTF-8"),
        ("x" * (30 << 20) + "x", "30 MiB"),
    ):
        with pytest.raises(Refused, match=said):
            import_postman(text)
    for environment in ("[]", "{}", '{"values": 7}', '{"values": [7]}'):
        with pytest.raises(Refused, match="environment"):
            import_postman(msgspec.json.encode(collection(request())), environment=environment)
    with pytest.raises(Refused, match="base_url"):
        import_postman(msgspec.json.encode(collection(request())), base_url="b.example")
