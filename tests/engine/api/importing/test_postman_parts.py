"""Each part of a collection on its own: URLs, variables, authentication, bodies, names."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from rich.pretty import pretty_repr

from engine.api.importing import Imported, import_document
from events.errors import Refused
from tests.engine.api.importing.collections import collection, imported_collection, only, raw, request, setting
from tests.engine.api.importing.documents import document, operation, problem, sent

__all__ = ()

CANARY = "hush-4711-canary"
BASE = [{"key": "base", "value": "https://api.example/v1"}]


def hidden(result: Imported) -> bool:
    """Tell whether the canary is anywhere but in the secrets."""
    shown = msgspec.json.encode(msgspec.structs.replace(result, secrets={})).decode()
    return CANARY in shown + repr(result) + pretty_repr(result)


URLS: list[tuple[Any, str, str]] = [
    ("https://API.example/x?a=b%20c&n=2&q=", "https://api.example", "/x?a=b%20c&n=2&q="),
    ("api.example:8080/x#part", "http://api.example:8080", "/x"),
    ("{{base}}/x/{{missing}}?t={{base}}", "https://api.example", "/v1/x/1?t=https%3A%2F%2Fapi.example%2Fv1"),
    ("{{base}}?a=1&a=2", "https://api.example", "/v1?a=1&a=2"),
    (
        {"protocol": "https", "host": ["api", "example"], "port": "81", "path": ["a b", ":missing"]},
        "https://api.example:81",
        "/a%20b/1",
    ),
    ({"host": "{{base}}", "path": "/x/{missing}"}, "https://api.example", "/v1/x/1"),
    ({"host": ["{{base}}"], "path": [{"type": "string", "value": "x"}]}, "https://api.example", "/v1/x"),
    ({"raw": "{{base}}/x?a=1"}, "https://api.example", "/v1/x?a=1"),
    ({"raw": "{{base}}/x", "query": [{"key": "a", "value": None}]}, "https://api.example", "/v1/x?a="),
]


@pytest.mark.parametrize(("url", "origin", "path"), URLS)
def test_urls(url: Any, origin: str, path: str) -> None:
    definition = only(request(url), variable=BASE)
    arguments = {"missing": "1"} if "missing" in definition["url"] else {}
    assert definition["url"].startswith(origin + "/")
    assert sent(definition, arguments)[0] == path
    assert problem(definition, {}) is None or arguments


def test_a_host_without_a_value_is_the_base_url() -> None:
    made = imported_collection(collection(request("{{host}}/x/:id")), base_url="https://b.example/v2/")
    assert made.actions["act"]["url"] == "https://b.example/v2/x/{id}"
    made = imported_collection(collection(request("https://{{host}}/x")), base_url="https://b.example")
    assert made.actions["act"]["url"] == "https://b.example/x"
    assert made.base_url == "https://b.example"


def test_variables_of_the_innermost_scope_go_first_but_for_the_environment() -> None:
    inner = {**request("{{base}}/{{a}}/{{b}}/{{c}}"), "variable": [{"key": "a", "value": "item"}]}
    folder = {"name": "f", "item": [inner], "variable": [{"key": n, "value": "folder"} for n in "ab"]}
    values = [{"id": "c", "value": "collection"}, {"key": "b", "value": "x"}, *BASE]
    content = collection(folder, variable=values)
    assert imported_collection(content).actions["f_act"]["url"].endswith("/v1/item/folder/collection")
    environment = {"values": [{"key": "a", "value": "all"}, {"key": "b", "value": "no", "enabled": False}]}
    made = imported_collection(content, environment={"environment": environment})
    assert made.actions["f_act"]["url"].endswith("/v1/all/folder/collection")
    assert made.actions["f_act"]["description"] == "f / act"


OAUTH = {"accessTokenUrl": "https://id.example/token", "clientId": "me", "clientSecret": CANARY, "scope": "a b"}
AUTHS: list[tuple[dict[str, Any], list[dict[str, Any]], dict[str, str]]] = [
    (setting("bearer", token=CANARY), [{"secret": "token", "in": "bearer"}], {"token": CANARY}),
    (setting("bearer", token="{{my token}}"), [{"secret": "my_token", "in": "bearer"}], {}),
    (setting("bearer", token="<token>"), [{"secret": "token", "in": "bearer"}], {}),
    (setting("bearer", token="{{url}}"), [{"secret": "url_2", "in": "bearer"}], {}),
    (setting("basic", username="me", password=CANARY), [{"in": "basic"}], {"username": "me", "password": CANARY}),
    (
        setting("apikey", key="X-K", value=CANARY),
        [{"secret": "x_k", "in": "header", "name": "X-K"}],
        {"x_k": CANARY},
    ),
    (
        setting("apikey", key="k", value=CANARY, **{"in": "query"}),
        [{"secret": "k", "in": "query", "name": "k"}],
        {"k": CANARY},
    ),
    (
        setting("oauth2", grant_type="authorization_code", accessToken=CANARY, headerPrefix="Bearer "),
        [{"secret": "token", "in": "bearer"}],
        {"token": CANARY},
    ),
    (
        setting("oauth2", accessToken="{{t}}", addTokenTo="queryParams"),
        [{"secret": "t", "in": "query", "name": "access_token"}],
        {},
    ),
    (
        setting("oauth2", grant_type="client_credentials", client_authentication="body", **OAUTH),
        [
            {
                "in": "oauth2",
                "token_url": "https://id.example/token",
                "client_id": "client_id",
                "client_secret": "client_secret",
                "scopes": ["a", "b"],
                "client_auth": "body",
            }
        ],
        {"client_id": "me", "client_secret": CANARY},
    ),
    ({"type": "noauth"}, [], {}),
]


@pytest.mark.parametrize(("stated", "security", "secrets"), AUTHS)
def test_authentication(stated: dict[str, Any], security: list[dict[str, Any]], secrets: dict[str, str]) -> None:
    result = imported_collection(collection(request(), auth=stated))
    assert result.config["security"] == security
    assert result.secrets == secrets
    assert not hidden(result)


def test_authentication_is_inherited_until_something_else_is_said() -> None:
    inner = {"name": "f", "auth": setting("basic", username="a", password="b"), "item": [request(name="one")]}
    items = [
        request(name="two"),
        inner,
        request(name="three", auth={"type": "noauth"}),
        request(name="four", auth=None),
    ]
    made = imported_collection(collection(*items, auth=setting("bearer", token="x")))
    assert made.config["security"] == [{"secret": "token", "in": "bearer"}]
    assert {name: each.get("security") for name, each in made.actions.items()} == {
        "two": None,
        "f_one": [{"in": "basic"}],
        "three": [],
        "four": None,
    }
    assert {name: each["required"] for name, each in made.requirements.items()} == dict.fromkeys(
        ("token", "username", "password"), False
    )


SECRETS: list[tuple[Any, list[dict[str, Any]], dict[str, str]]] = [
    (
        {"header": [{"key": "Authorization", "value": "Bearer {{who}}"}]},
        [{"secret": "who", "in": "bearer"}],
        {"who": CANARY},
    ),
    (
        {"header": f"Authorization: Token {CANARY}\nX-Empty:"},
        [{"secret": "authorization", "in": "header", "name": "Authorization", "prefix": "Token "}],
        {"authorization": CANARY},
    ),
    (
        {"header": [{"key": "X-Who", "value": "{{who}}"}, {"key": "X-Api-Key", "value": "{{who}}"}]},
        [{"secret": "who", "in": "header", "name": "X-Who"}, {"secret": "who", "in": "header", "name": "X-Api-Key"}],
        {"who": CANARY},
    ),
    ({"url": "https://a.example/bot{{who}}/x"}, [{"secret": "who", "in": "path", "name": "who"}], {"who": CANARY}),
    (
        {"url": {"raw": "https://a.example/:token", "variable": [{"key": "token", "value": CANARY}]}},
        [{"secret": "token", "in": "path", "name": "token"}],
        {"token": CANARY},
    ),
    (
        {"url": f"https://a.example/?api_key={CANARY}"},
        [{"secret": "api_key", "in": "query", "name": "api_key"}],
        {"api_key": CANARY},
    ),
    ({"url": "https://a.example/?id={{who}}"}, [{"secret": "who", "in": "query", "name": "id"}], {"who": CANARY}),
    ({"url": f"https://me:{CANARY}@a.example/"}, [{"in": "basic"}], {"username": "me", "password": CANARY}),
    ({"url": "https://{{who}}@a.example/"}, [{"in": "basic"}], {"username": CANARY}),
    (
        {"header": [{"key": "Cookie", "value": f"sid={CANARY}"}, {"key": "X-Token", "value": "x", "disabled": True}]},
        [{"secret": "cookie", "in": "header", "name": "Cookie"}],
        {"cookie": f"sid={CANARY}"},
    ),
    (
        {"auth": setting("bearer", token="x"), "header": [{"key": "authorization", "value": CANARY}]},
        [{"secret": "token", "in": "bearer"}],
        {"token": "x"},
    ),
]


@pytest.mark.parametrize(("said", "security", "secrets"), SECRETS)
def test_secrets_are_told_apart(said: Any, security: list[dict[str, Any]], secrets: dict[str, str]) -> None:
    variable = [{"key": "who", "value": CANARY, "type": "secret"}]
    result = imported_collection(
        collection({"name": "act", "request": said | {"url": said.get("url", "a.example")}}, variable=variable)
    )
    assert (result.config["security"], result.secrets) == (security, secrets)
    assert not hidden(result)
    assert all(each["secret"] for each in result.requirements.values())


def test_what_an_environment_calls_secret_is_a_credential() -> None:
    values = [{"key": "who", "value": CANARY, "type": "secret"}]
    content = collection(request("a.example/{{who}}", header=[{"key": "X-Note", "value": "as {{who}}"}]))
    made = imported_collection(content, environment={"values": values})
    assert made.secrets == {"who": CANARY, "x_note": f"as {CANARY}"}
    assert not hidden(made)


def test_the_value_of_a_credential_is_nowhere_else() -> None:
    described = request(auth=setting("bearer", token=CANARY), description=f"Send Bearer {CANARY}!")
    clear = request(name="clear", header=[{"key": "X-Note", "value": f"as {CANARY}"}])
    named = request(name=f"as {CANARY}")
    unmade = request(name=f"for {CANARY}", method="BREW")
    info = collection()["info"] | {"name": f"Harbour {CANARY}"}
    made = imported_collection(collection(described, clear, named, unmade) | {"info": info})
    assert made.actions["act"]["description"] == "act\nSend Bearer ***!"
    assert list(made.actions) == ["act"]
    assert made.title == "Harbour ***"
    assert not hidden(made)
    secret = [{"key": "who", "value": CANARY, "type": "secret"}]
    body = raw('{"as": "{{who}}"}')
    within = request(method="POST", description=f"As {CANARY}", **body)
    clear = request(f"https://api.example/{CANARY}", name="clear")
    path = {"raw": "https://api.example/:who", "variable": [{"key": "who", "value": "b-4711-x", "type": "secret"}]}
    made_too = imported_collection(collection(within, clear, request(path, name="path"), variable=secret))
    assert (made_too.actions["act"]["description"], list(made_too.actions)) == ("act\nAs ***", ["act", "path"])
    assert (made_too.secrets, hidden(made_too)) == ({"who": "b-4711-x"}, False)
    assert [each.operation for each in made.skipped] == ["BREW for ***", "GET clear", "GET as ***"]
    assert not hidden(made)


def test_a_second_pair_for_basic_is_one_packed_secret() -> None:
    items = [request(name=f"n{n}", auth=setting("basic", username=f"u{n}", password="p")) for n in (1, 2, 2)]
    made = imported_collection(collection(*items))
    assert made.actions["n1"]["security"] == [{"in": "basic"}]
    assert made.config["security"] == [{"secret": "basic", "in": "header", "name": "Authorization", "prefix": "Basic "}]
    assert made.secrets == {"username": "u1", "password": "p", "basic": "dTI6cA=="}
    assert len(made.actions) == 3


def fields(mode: str, *listed: dict[str, Any]) -> dict[str, Any]:
    """Return a body of fields."""
    return {"body": {"mode": mode, mode: list(listed)}}


JSON, FORM = "application/json", "application/x-www-form-urlencoded"
BODIES: list[tuple[dict[str, Any], dict[str, Any], str | None, str | None]] = [
    (raw('{"a": {"b": [1, "x"]}, "c": ""}'), {}, JSON, '{"a":{"b":[1,"x"]},"c":""}'),
    (raw('{"a": "{{known}} // \\" {{open}}", "b": {{number}}}'), {"a": "z"}, JSON, '{"b":5,"a":"z"}'),
    (raw("[1, {{number}}]", "json"), {}, JSON, "[1,5]"),
    (raw('{"a": 1} // end\n', "json"), {"a": 2}, JSON, '{"a":2}'),
    (raw("7", "json"), {}, JSON, "7"),
    (raw("{}"), {}, JSON, "{}"),
    (raw("<a>{{known}}</a>", "xml"), {}, "application/xml", '<a>say "hi"</a>'),
    (raw("words"), {}, "text/plain", "words"),
    (raw("a=1&b=x%26y") | {"header": [{"key": "content-type", "value": FORM}]}, {}, FORM, "a=1&b=x%26y"),
    (raw("  "), {}, None, None),
    (fields("urlencoded", {"key": "a", "value": "{{open}}"}, {"key": "a", "disabled": True}), {"a": "v"}, FORM, "a=v"),
    (fields("urlencoded", {"key": "a", "value": "1"}, {"key": "a", "value": "2"}), {}, FORM, "a=1&a=2"),
    ({"body": {"mode": "file", "file": {"src": "/f"}}}, {"body": "aGk="}, "application/octet-stream", "hi"),
    ({"body": {"mode": "raw", "raw": "x", "disabled": True}}, {}, None, None),
    ({"body": None}, {}, None, None),
]


@pytest.mark.parametrize(("said", "arguments", "content_type", "body"), BODIES)
def test_bodies(said: dict[str, Any], arguments: dict[str, Any], content_type: str | None, body: str | None) -> None:
    variable = [{"key": "known", "value": 'say "hi"'}, {"key": "number", "value": 5}]
    definition = only(request("a.example", "POST", **said), variable=variable)
    _, headers, content = sent(definition, arguments)
    assert (headers.get("Content-Type"), content) == (content_type, body)


def test_what_has_no_value_is_asked_for_and_examples_are_shown() -> None:
    listed = [{"key": "q", "value": "{{q}}", "description": "What for"}, {"key": "n", "value": "2", "disabled": True}]
    url = {"raw": "a.example/:id", "query": listed, "variable": [{"key": "id", "value": "7"}]}
    body = raw('{"who": {"name": "{{name}}", "age": 3, "tags": [{{tag}}]}, "password": "x", "note": "n"}')
    header = [{"key": "X-A", "value": "{{a}}"}, {"key": "X-Off", "value": "1", "disabled": True}]
    header += [{"key": "Idempotency-Key", "value": "{{$guid}}"}]
    result = imported_collection(collection(request(url, "POST", header=header, **body)))
    made = result.actions["act"]
    assert made["query_params"]["required"] == ["id", "q"]
    assert made["query_params"]["properties"] == {
        "id": {"type": "string", "description": "For example 7"},
        "q": {"type": "string", "description": "What for"},
        "n": {"type": "integer", "description": "For example 2"},
    }
    assert made["headers"]["required"] == ["X-A"]
    assert list(made["headers"]["properties"]) == ["X-A", "X-Off"]
    assert made["idempotency_header"] == "Idempotency-Key"
    assert made["body"]["required"] == ["who"]
    who = made["body"]["properties"]["who"]
    assert who["properties"] == {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {}},
    }
    assert who["description"] == 'For example {"name":"","age":3,"tags":[null]}'
    assert "value" not in who
    assert [each.operation for each in result.skipped] == ["POST act: value of password"]


def test_files_and_typed_fields_of_a_form() -> None:
    listed: list[dict[str, Any]] = [
        {"key": "f", "type": "file", "src": ["/a", "/b"], "description": "Both"},
        {"key": "g", "type": "file", "src": None, "disabled": True},
        {"key": "m", "value": '{"k": 1}', "contentType": "application/json"},
    ]
    made = only(request("a.example", "POST", **fields("formdata", *listed)))
    assert made["body"]["required"] == ["f"]
    assert made["body"]["properties"]["f"]["type"] == "array"
    body = sent(made, {"f": ["aGk=", "aG8="]})[2] or ""
    assert body.count('name="f"; filename="f"') == 2
    assert 'name="m"\r\nContent-Type: application/json\r\n\r\n{"k":1}\r\n' in body


def test_graphql_variables_are_an_argument() -> None:
    query = "mutation M($id: ID!, $n: [Int!], $on: Boolean = true, $in: Thing!) { x }"
    graphql = {"query": query, "operationName": "M", "variables": '{"n": [1], "in": {{what}}}'}
    made = only(request("a.example", "POST", body={"mode": "graphql", "graphql": graphql}))
    variables = made["body"]["properties"]["variables"]
    assert variables["required"] == ["id", "in"]
    assert variables["properties"] == {
        "n": {"type": ["array", "null"], "items": {"type": "integer"}},
        "in": {},
        "id": {"type": ["string", "integer"]},
        "on": {"type": ["boolean", "null"]},
    }
    assert made["body"]["required"] == ["query", "operationName", "variables"]
    assert problem(made, {"variables": {"id": 1}}) is not None
    content = sent(made, {"variables": {"id": 1, "in": 2}})[2] or ""
    assert msgspec.json.decode(content) == {"query": query, "operationName": "M", "variables": {"id": 1, "in": 2}}


def test_a_document_says_itself_what_it_is() -> None:
    wrapped = {"collection": collection(request(name="one"))}
    assert list(import_document(msgspec.json.encode(wrapped)).actions) == ["one"]
    openapi = msgspec.json.encode(document({"/x": {"get": operation()}}))
    assert list(import_document(openapi).actions) == ["act"]
    with pytest.raises(Refused, match="no Postman collection"):
        import_document(openapi, environment="{}")


def test_names_are_distinct_and_stay_the_same() -> None:
    same = [request(name="Ünïcode: get it!") for _ in range(40)] + [request(name="x" * 300), request(name="Получить")]
    made = imported_collection(collection({"name": "A/B", "item": same}))
    assert len(made.actions) == 42
    again = imported_collection(collection({"name": "A/B", "item": same}))
    assert list(again.actions) == list(made.actions)
    assert "A_B" in made.actions or any(name.startswith("A_B_") for name in made.actions)
