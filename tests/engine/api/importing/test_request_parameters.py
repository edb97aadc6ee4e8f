"""Parameters: each at its own place, in its style, under a name of its own; some are never a model's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.api.calls import refused
from tests.engine.api.importing.documents import body_of, document, imported, operation, parameter, problem, sent


def read(*parameters: dict[str, Any], path: str = "/x", method: str = "get", **rest: Any) -> dict[str, Any]:
    content = document({path: {method: operation(parameters=list(parameters), **rest)}})
    return imported(content).actions["act"]


def test_case_api_08_each_of_four_values_of_one_name_arrives() -> None:
    parameters = [parameter("id", place) for place in ("query", "header", "path", "cookie")]
    schema = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}
    definition = read(*parameters, path="/docks/{id}", method="put", requestBody=body_of(schema))
    values = {"id": "p", "id_query": "q", "id_header": "h", "id_cookie": "c", "id_body": 5, "name": "n"}
    path, headers, body = sent(definition, values)
    assert (path, headers["id"], headers["Cookie"], body) == ("/v1/docks/p?id=q", "h", "id=c", '{"id":5,"name":"n"}')
    assert definition["wire"]["body"] == {"id_body": {"name": "id"}}
    # The order in the document changes no name.
    again = read(*reversed(parameters), path="/docks/{id}", method="put", requestBody=body_of(schema))
    assert sent(again, values) == (path, headers, body)


def test_case_api_08_a_parameter_called_body_and_bodies_that_are_no_objects() -> None:
    texts = {"type": "array", "items": {"type": "string"}}
    definition = read(parameter("body"), method="post", requestBody=body_of(texts))
    assert sent(definition, {"body": "q", "body_body": ["a"]})[::2] == ("/v1/x?body=q", '["a"]')
    definition = read(method="post", requestBody=body_of({"type": "string"}))
    assert sent(definition, {"body": "t"})[2] == '"t"'
    assert sent(read(parameter("body"), method="post"), {"body": "q"})[::2] == ("/v1/x?body=q", None)


def test_suffixed_names_stay_clear_of_names_that_are_there() -> None:
    definition = read(
        parameter("id", "path"), parameter("id"), parameter("id_query"), parameter("id", "header"), path="/x/{id}"
    )
    assert list(definition["query_params"]["properties"]) == ["id", "id_query_2", "id_query"]
    assert sent(definition, {"id": "1", "id_query_2": "2", "id_query": "3"})[0] == "/v1/x/1?id=2&id_query=3"


def test_names_that_providers_refuse_are_written_anew() -> None:
    definition = read(*(parameter(name) for name in ("filter[a]", "filter(a)", "$top", "Ø", "Ø", "x" * 70, "a.b-c")))
    names = list(definition["query_params"]["properties"])
    assert names == ["filter_a", "filter_a_query", "top", "query", "x" * 64, "a.b-c"]
    path = sent(definition, {"filter_a": "1", "top": "2", "query": "3"})[0]
    assert path == "/v1/x?filter%5Ba%5D=1&%24top=2&%C3%98=3"


STYLES = [
    ({}, ["a", "b"], "?p=a&p=b"),
    ({"explode": False}, ["a", "b"], "?p=a,b"),
    ({"style": "spaceDelimited"}, ["a", "b"], "?p=a%20b"),
    ({"style": "pipeDelimited", "explode": False}, ["a", "b"], "?p=a%7Cb"),
    ({"style": "spaceDelimited", "explode": True}, ["a", "b"], "?p=a&p=b"),
    ({"style": "deepObject"}, {"k": "v"}, "?p%5Bk%5D=v"),
    (
        {"content": {"application/json": {"schema": {"type": "object"}}}, "schema": None},
        {"k": 1},
        "?p=%7B%22k%22%3A1%7D",
    ),
    ({"in": "path", "style": "label"}, "a", "/.a"),
    ({"in": "path", "style": "matrix", "explode": True}, ["a", "b"], "/;p=a;p=b"),
    ({"in": "path"}, ["a", "b"], "/a,b"),
]


@pytest.mark.parametrize(("stated", "value", "expected"), STYLES)
def test_styles(stated: dict[str, Any], value: Any, expected: str) -> None:
    definition = read({**parameter("p"), "schema": {}, **stated}, path="/{p}" if "in" in stated else "/")
    assert sent(definition, {"p": value})[0] in (f"/v1{expected}", f"/v1/{expected}")


def test_case_api_09_headers_that_no_model_sets() -> None:
    names = ("Authorization", "Host", "Content-Length", "Transfer-Encoding", "Content-Type", "Accept", "Cookie", "TE")
    given = [parameter(name, "header", required=True) for name in (*names, "X-Ref", "X-API-Key", "Idempotency-Key")]
    scheme = {"k": {"type": "apiKey", "in": "header", "name": "x-api-key"}}
    content = document(
        {"/x": {"get": operation(parameters=given, security=[{"k": []}])}}, components={"securitySchemes": scheme}
    )
    result = imported(content)
    definition = result.actions["act"]
    assert list(definition["headers"]["properties"]) == ["X-Ref"]
    assert definition["idempotency_header"] == "Idempotency-Key"
    # A credential that the document declares as a mere parameter is a credential all the same.
    assert definition["security"] == [
        {"secret": "k", "in": "header", "name": "x-api-key"},
        {"secret": "authorization", "in": "header", "name": "Authorization"},
    ]
    assert list(result.requirements) == ["k", "authorization"]
    assert "line break" in refused(definition, {"X-Ref": "ok\r\nX-Admin: 1"})


def test_case_api_05_a_variable_that_nobody_declares_is_one_segment() -> None:
    definition = read(path="/docks/{dock}/log?q={q}")
    assert definition["query_params"]["required"] == ["dock", "q"]
    assert sent(definition, {"dock": "a/b", "q": "1&x=2"})[0] == "/v1/docks/a%2Fb/log?q=1%26x%3D2"
    assert ".." in refused(definition, {"dock": "..", "q": ""})


def test_parameters_of_the_path_and_of_the_operation() -> None:
    item = {
        "parameters": [parameter("id", "path", description="of the path"), parameter("id"), parameter("gone", "path")],
        "get": operation(parameters=[parameter("id", "path", description="of the operation")]),
    }
    definition = imported(document({"/x/{id}": item})).actions["act"]
    properties = definition["query_params"]["properties"]
    assert {name: each.get("description") for name, each in properties.items()} == {
        "id": "of the operation",
        "id_query": None,
    }


def test_schemas_of_parameters_are_kept() -> None:
    schema = {"type": "integer", "format": "int32", "enum": [1, 2], "default": 2, "example": 1, "minimum": 0}
    definition = read(parameter("n", schema=schema, description="How many", required=True), parameter("m", schema=None))
    properties = definition["query_params"]["properties"]
    kept = {key: item for key, item in schema.items() if key != "example"}
    assert properties == {"n": {**kept, "description": "How many"}, "m": {}}
    assert problem(definition, {"n": 3}) is not None
    assert problem(definition, {"m": "x"}) is not None
    assert problem(definition, {"n": 1, "m": [1]}) is None


@pytest.mark.parametrize(
    ("stated", "reason"),
    [
        ({"name": "q", "in": "nowhere"}, 'its parameter "q" is not valid: Invalid enum value'),
        ({"in": "query"}, "one of its parameters has no name"),
        (parameter("q", style="matrix"), 'its parameter "q" has the style "matrix"'),
        (parameter("a b", "header"), 'its header "a b" is no legal name of a header'),
        (parameter("q", schema=[]), "a schema is an array, not an object"),
    ],
)
def test_a_parameter_that_cannot_be_said_skips_its_operation(stated: dict[str, Any], reason: str) -> None:
    result = imported(document({"/x": {"get": operation(parameters=[stated]), "post": {}}}))
    assert list(result.actions) == ["post_x"]
    assert result.skipped[0].reason.startswith(reason)
