"""Swagger 2.0: hosts and base paths, body and form parameters, collection formats, security definitions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.engine.api.calls import built
from tests.engine.api.importing.documents import document, imported, operation, problem, sent


def read(*parameters: dict[str, Any], **rest: Any) -> dict[str, Any]:
    content = document({"/x": {"post": operation(parameters=list(parameters), **rest)}}, "2.0", host="a.example")
    result = imported(content)
    assert result.skipped == ()
    return result.actions["act"]


@pytest.mark.parametrize(
    ("stated", "base_url", "expected"),
    [
        ({"host": "a.example", "basePath": "/v2/", "schemes": ["http", "https"]}, None, "https://a.example/v2/x"),
        ({"host": "a.example:8080", "schemes": ["http"]}, None, "http://a.example:8080/x"),
        ({"host": "a.example", "basePath": "/"}, None, "https://a.example/x"),
        ({"host": "a.example"}, "http://b.example", "http://a.example/x"),
        ({"basePath": "/v2"}, "https://b.example/docs", "https://b.example/v2/x"),
        ({}, "https://b.example/v1", "https://b.example/v1/x"),
        ({"host": "a.example", "schemes": ["wss"]}, None, 'its server\'s URL has the scheme "wss"'),
        ({"basePath": "/v2"}, None, 'its server\'s URL "/v2" is relative: give base_url'),
        ({}, None, "the document names no server: give base_url"),
    ],
)
def test_where_requests_go(stated: dict[str, Any], base_url: str | None, expected: str) -> None:
    result = imported(document({"/x": {"get": operation()}}, "2.0", **stated), base_url=base_url)
    if expected.startswith("http"):
        assert result.actions["act"]["url"] == expected
    else:
        assert result.skipped[0].reason.startswith(expected)


def test_an_operation_may_have_schemes_of_its_own() -> None:
    content = document({"/x": {"get": operation(schemes=["http"])}}, "2.0", host="a.example", schemes=["https"])
    assert imported(content).actions["act"]["url"] == "http://a.example/x"


def test_a_body_parameter_is_the_body() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "id": {"readOnly": True}}, "required": ["n"]}
    definition = read({"name": "bay", "in": "body", "required": True, "schema": schema})
    assert sent(definition, {"n": 1})[2] == '{"n":1}'
    definition = read({"name": "bay", "in": "body", "schema": {"type": "array"}}, consumes=["application/vnd.x+json"])
    assert definition["body_content_type"] == "application/vnd.x+json"
    assert sent(definition, {"body": [1]})[2] == "[1]"


def test_form_parameters_are_fields() -> None:
    tags = {"name": "tags", "in": "formData", "type": "array", "items": {"type": "string"}}
    note = {"name": "note", "in": "formData", "type": "string", "required": True, "description": "Words"}
    definition = read(tags, note)
    assert definition["body"]["properties"]["note"] == {"type": "string", "description": "Words"}
    assert sent(definition, {"tags": ["a", "b"], "note": "n"})[2] == "tags=a,b&note=n"
    assert problem(definition, {}) is not None
    definition = read({**tags, "collectionFormat": "multi"}, note, consumes=["application/json", "multipart/form-data"])
    assert definition["body_content_type"] == "multipart/form-data"
    file = {"name": "file", "in": "formData", "type": "file", "required": True}
    content = built(read(file, note), {"file": "aGk=", "note": "n"}).content or b""
    assert b'name="file"; filename="file"' in content
    assert b"\r\n\r\nhi\r\n" in content


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({}, "/x?p=a,b"),
        ({"collectionFormat": "csv"}, "/x?p=a,b"),
        ({"collectionFormat": "multi"}, "/x?p=a&p=b"),
        ({"collectionFormat": "ssv"}, "/x?p=a%20b"),
        ({"collectionFormat": "pipes"}, "/x?p=a%7Cb"),
    ],
)
def test_collection_formats(stated: dict[str, Any], expected: str) -> None:
    lists = {"name": "p", "in": "query", "type": "array", "items": {"type": "string"}, **stated}
    assert sent(read(lists), {"p": ["a", "b"]})[0] == expected


def test_a_collection_format_that_cannot_be_said_skips_its_operation() -> None:
    lists = {"name": "p", "in": "query", "type": "array", "collectionFormat": "tsv"}
    result = imported(document({"/x": {"get": operation(parameters=[lists])}}, "2.0", host="a.example"))
    assert result.skipped[0].reason == 'its parameter "p" has the collectionFormat "tsv" in query'


def test_shared_parts_and_security_definitions() -> None:
    paths = {
        "/x/{id}": {
            "parameters": [{"$ref": "#/parameters/id"}, {"$ref": "#/parameters/body"}],
            "put": operation(security=[{"basic": []}]),
        }
    }
    content = document(
        paths,
        "2.0",
        host="a.example",
        consumes=["application/json"],
        parameters={
            "id": {"name": "id", "in": "path", "required": True, "type": "integer", "maximum": 9},
            "body": {"name": "b", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Bay"}},
        },
        definitions={"Bay": {"type": "object", "properties": {"next": {"$ref": "#/definitions/Bay"}}}},
        securityDefinitions={"basic": {"type": "basic"}, "key": {"type": "apiKey", "in": "query", "name": "k"}},
    )
    result = imported(content)
    definition = result.actions["act"]
    assert definition["security"] == [{"in": "basic"}]
    assert list(result.requirements) == ["username", "password"]
    assert sent(definition, {"id": 7, "next": {"next": {}}})[::2] == ("/x/7", '{"next":{"next":{}}}')
    assert problem(definition, {"id": 10}) is not None
