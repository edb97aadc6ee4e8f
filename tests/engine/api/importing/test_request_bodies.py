"""Bodies: the content type is chosen once and for all, an object's properties stand alone, others are sent whole."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.engine.api.calls import built
from tests.engine.api.importing.documents import body_of, document, imported, operation, problem, sent

BAY = {
    "type": "object",
    "required": ["name", "id"],
    "properties": {
        "id": {"type": "string", "readOnly": True},
        "name": {"type": "string"},
        "code": {"type": "string", "writeOnly": True},
        "size": {"type": "object", "properties": {"kg": {"type": "number"}}, "required": ["kg"]},
    },
}
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"


def read(body: Any, version: str = "3.0.3", **components: Any) -> dict[str, Any]:
    content = document({"/x": {"post": operation(requestBody=body)}}, version, components=components)
    result = imported(content)
    assert result.skipped == ()
    return result.actions["act"]


def test_properties_become_arguments_but_for_the_servers_own() -> None:
    definition = read(body_of(BAY))
    assert list(definition["body"]["properties"]) == ["name", "code", "size"]
    assert definition["body"]["required"] == ["name"]
    assert definition["body"]["properties"]["code"] == {"type": "string", "writeOnly": True}
    assert sent(definition, {"name": "a", "size": {"kg": 1.5}})[2] == '{"name":"a","size":{"kg":1.5}}'
    assert "kg" in (problem(definition, {"name": "a", "size": {}}) or "")


def test_of_a_body_that_may_be_left_out_all_that_is_required_or_nothing() -> None:
    definition = read(body_of(BAY, required=False))
    assert problem(definition, {}) is None
    assert sent(definition, {})[2] is None
    assert problem(definition, {"name": "a"}) is None
    assert "name" in (problem(definition, {"code": "x"}) or "")


CHOICES = [
    (["text/plain", "application/json", "application/vnd.api+json"], None),
    (["application/xml", "application/vnd.api+json", FORM], "application/vnd.api+json"),
    (["application/json; charset=utf-8"], "application/json; charset=utf-8"),
    (["application/xml", MULTIPART, FORM], FORM),
    (["application/xml", MULTIPART], MULTIPART),
    (["application/xml", "text/plain"], "text/plain"),
    (["text/csv", "text/xml"], "text/xml"),
    (["text/csv", "image/png"], "text/csv"),
    (["*/*"], None),
    (["", "text/csv"], "text/csv"),
]


@pytest.mark.parametrize(("offered", "chosen"), CHOICES)
def test_case_api_12_of_several_content_types_one_is_fixed(offered: list[str], chosen: str | None) -> None:
    content = {name: {"schema": {"type": "object", "properties": {"n": {"type": "integer"}}}} for name in offered}
    definition = read({"required": True, "content": content})
    assert definition.get("body_content_type") == chosen
    kind = dict(built(definition, {"n": 1}).headers)["Content-Type"]
    assert kind.startswith(chosen or "application/json")


def test_case_api_12_forms_and_their_encoding() -> None:
    properties = {
        "bay": {"type": "array", "items": {"type": "integer"}},
        "note": {"type": "string"},
        "flag": {"type": "boolean"},
        "deep": {"type": "object"},
    }
    schema = {"type": "object", "properties": properties}
    values = {"bay": [1, 2], "note": "a&b c", "flag": True, "deep": {"x": 1}}
    plain = sent(read(body_of(schema, FORM)), values)[2]
    assert plain == "bay=1&bay=2&note=a%26b+c&flag=true&deep=%7B%22x%22%3A1%7D"
    encoding = {"bay": {"style": "form", "explode": False}, "deep": {"style": "deepObject", "explode": True}}
    definition = read(body_of(schema, FORM, encoding=encoding))
    assert definition["body_encoding_rules"] == encoding
    assert sent(definition, values)[2] == "bay=1,2&note=a%26b+c&flag=true&deep%5Bx%5D=1"


def test_case_api_12_multipart_with_files_and_typed_parts() -> None:
    binary = {"type": "string", "format": "binary"}
    schema = {
        "type": "object",
        "properties": {
            "file": {"$ref": "#/components/schemas/File"},
            "files": {"type": "array", "items": binary},
            "photo": {"type": "string", "contentMediaType": "image/png"},
            "meta": {"type": "object"},
            "note": {"type": "string"},
        },
    }
    encoding = {"meta": {"contentType": "application/json, text/plain"}, "note": {"contentType": "text/*"}}
    definition = read(body_of(schema, MULTIPART, encoding=encoding), "3.1.0", schemas={"File": binary})
    assert definition["body_encoding_rules"] == {
        "file": {"file": True},
        "files": {"file": True},
        "photo": {"file": True},
        "meta": {"contentType": "application/json"},
    }
    packed = base64.b64encode(b"\x00\xff").decode()
    named = {"content": packed, "filename": "a.bin"}
    values = {"file": packed, "files": [named, packed], "photo": packed, "meta": {"k": 1}, "note": "n"}
    assert problem(definition, values) is None
    content = built(definition, values).content or b""
    assert content.count(b"\r\n\r\n\x00\xff\r\n") == 4
    assert b'name="files"; filename="a.bin"' in content
    assert b'name="meta"\r\nContent-Type: application/json\r\n\r\n{"k":1}' in content
    assert problem(definition, {"file": {"filename": "a"}}) is not None


WHOLE = [
    ({"type": "array", "items": {"type": "integer"}}, "application/json", [1, 2], "[1,2]"),
    ({"type": "boolean"}, "application/json", False, "false"),
    ({}, "application/json", {"any": [1]}, '{"any":[1]}'),
    (None, "application/merge-patch+json", {"a": None}, '{"a":null}'),
    ({"type": "object"}, "application/json", {"k": "v"}, '{"k":"v"}'),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, "application/json", {"k": 1}, '{"k":1}'),
    ({**BAY, "additionalProperties": True}, "application/json", {"name": "a", "own": 1}, '{"name":"a","own":1}'),
    ({"oneOf": [BAY, {"type": "string"}]}, "application/json", "t", '"t"'),
    ({"oneOf": [{**BAY, "required": []}, BAY]}, "application/json", {"name": "a"}, '{"name":"a"}'),
    ({"type": "string"}, "text/plain", "words", "words"),
    ({"type": "string"}, "application/xml", "<a/>", "<a/>"),
    ({"type": "object", "additionalProperties": True}, FORM, {"k": "v"}, "k=v"),
    ({"type": "string", "format": "binary"}, "application/octet-stream", "aGk=", "hi"),
    (None, "image/png", "aGk=", "hi"),
]


@pytest.mark.parametrize(("schema", "content_type", "value", "expected"), WHOLE)
def test_other_bodies_are_one_argument(schema: Any, content_type: str, value: Any, expected: str) -> None:
    definition = read(body_of(schema, content_type))
    assert definition["body_whole"] == "body"
    assert definition["body"]["required"] == ["body"]
    assert sent(definition, {"body": value})[2] == expected


def test_parts_of_an_object_are_put_together() -> None:
    components = {
        "Base": {
            "type": "object",
            "properties": {"id": {"type": "string", "readOnly": True}, "n": {"type": "integer"}},
        },
        "Named": {"allOf": [{"$ref": "#/components/schemas/Base"}, {"required": ["name"]}]},
    }
    schema = {
        "allOf": [
            {"$ref": "#/components/schemas/Named"},
            {"properties": {"name": {"type": "string"}, "n": {"minimum": 3}}},
            {"oneOf": [{"type": "object", "properties": {"last": {"type": "string"}}}]},
        ],
        "required": ["id", "last"],
    }
    definition = read(body_of(schema), schemas=components)
    assert list(definition["body"]["properties"]) == ["n", "name", "last"]
    assert definition["body"]["required"] == ["name", "last"]
    assert problem(definition, {"name": "a", "last": "b", "n": 3}) is None
    assert problem(definition, {"name": "a", "last": "b", "n": 2}) is not None


def test_which_properties_must_be_given_may_be_a_choice() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    definition = read(body_of(schema))
    assert sent(definition, {"b": "x"})[2] == '{"b":"x"}'
    assert problem(definition, {}) is not None


def test_a_form_takes_the_fields_of_all_choices() -> None:
    one = {
        "type": "object",
        "properties": {"kind": {"enum": ["a"]}, "x": {"type": "string"}},
        "required": ["kind", "x"],
    }
    two = {"type": "object", "properties": {"kind": {"enum": ["b"]}, "y": {"type": "string"}}, "required": ["kind"]}
    definition = read(body_of({"oneOf": [one, two]}, FORM))
    assert definition["body"]["required"] == ["kind"]
    assert sent(definition, {"kind": "b", "y": "1"})[2] == "kind=b&y=1"
    assert problem(definition, {"kind": "c"}) is not None


def test_xml_has_the_names_of_its_schema() -> None:
    schema = {
        "type": "object",
        "xml": {"name": "Bay"},
        "properties": {
            "id": {"type": "string", "xml": {"attribute": True, "name": "ID"}},
            "note": {"type": "string", "xml": {"name": "Note"}},
        },
    }
    definition = read(body_of(schema, "application/xml"))
    body = sent(definition, {"ID": "7", "Note": "n"})[2] or ""
    assert '<Bay ID="7"><Note>n</Note></Bay>' in body


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"required": True}, "its request body is not valid: Object missing required field `content`"),
        (body_of({"type": "object"}, "nonsense"), 'its request body has the content type "nonsense"'),
        ("text", "its request body is not valid"),
    ],
)
def test_a_body_that_cannot_be_said_skips_its_operation(body: Any, reason: str) -> None:
    result = imported(document({"/x": {"post": operation(requestBody=body), "get": {}}}))
    assert list(result.actions) == ["get_x"]
    assert result.skipped[0].reason.startswith(reason)
