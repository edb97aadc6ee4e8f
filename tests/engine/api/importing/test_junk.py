"""Junk in any place of a document: an operation is imported soundly or skipped, and nothing else happens."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from engine.api.importing import import_openapi
from events.errors import Refused
from tests.engine.api.importing.documents import body_of, document, operation, parameter, sound
from tests.engine.api.importing.test_written_schemas import CYCLES

REF = {"$ref": "#/components/schemas/Node"}
FULL = document(
    {
        "/x/{id}": {
            "servers": [{"url": "https://{v}.example", "variables": {"v": {"default": "a"}}}],
            "parameters": [parameter("id", "path"), {"$ref": "#/components/parameters/p"}],
            "get": operation(security=[{"key": []}, {}], summary="s", description="d", tags=["t"]),
            "post": operation(
                operationId="post",
                parameters=[parameter("q", style="deepObject", schema={"type": "object", "properties": {"a": REF}})],
                requestBody=body_of(
                    {
                        "type": "object",
                        "required": ["a"],
                        "properties": {"a": {"type": "string", "enum": ["x"], "nullable": True}, "b": REF},
                        "allOf": [{"$ref": "#/components/schemas/Pet"}],
                        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
                    },
                    "multipart/form-data",
                    encoding={"a": {"contentType": "text/plain", "style": "form", "explode": True}},
                ),
            ),
        }
    },
    security=[{"key": []}],
    components={
        "schemas": CYCLES,
        "parameters": {"p": parameter("p", "header", schema={"type": "array", "items": REF, "minItems": 1})},
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}},
    },
)
OLD = document(
    {
        "/x/{id}": {
            "parameters": [{"name": "id", "in": "path", "type": "string", "required": True}],
            "post": operation(
                consumes=["multipart/form-data"],
                parameters=[
                    {"name": "f", "in": "formData", "type": "file"},
                    {"name": "l", "in": "formData", "type": "array", "collectionFormat": "multi", "items": {}},
                ],
            ),
            "put": operation(
                operationId="put", parameters=[{"name": "b", "in": "body", "schema": {"$ref": "#/definitions/D"}}]
            ),
        }
    },
    "2.0",
    host="a.example",
    basePath="/v1",
    schemes=["https"],
    definitions={"D": {"type": "object", "properties": {"d": {"$ref": "#/definitions/D"}}}},
    securityDefinitions={"basic": {"type": "basic"}},
    security=[{"basic": []}],
)
JUNK: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    "",
    "text",
    "#/nowhere",
    [],
    [None],
    ["a", 1],
    {},
    {"a": None},
    {"$ref": "#"},
    {"$ref": "#/components/schemas/Self"},
    {"$ref": 7},
    [{"$ref": "x.json"}],
    {"type": ["string", 5]},
    {"": {}},
    "\x00",
    "Ø" * 80,
)


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key) of every value."""
    for key in list(node) if isinstance(node, dict) else range(len(node)):
        yield node, key
        if isinstance(node[key], (dict, list)):
            yield from places(node[key])


def test_junk_anywhere_breaks_one_operation_at_most() -> None:
    chance = random.Random(7)
    for whole in (FULL, OLD):
        for number in range(len(list(places(whole)))):
            spoilt = copy.deepcopy(whole)
            container, key = list(places(spoilt))[number]
            for value in chance.sample(JUNK, 6):
                container[key] = value
                check(spoilt)


def version(content: Any) -> bool:
    return "3.0.3" in (content.get("openapi"),) or "2.0" in (content.get("swagger"),)


def check(content: Any) -> None:
    if not isinstance(content.get("paths"), dict) or not content["paths"] or not version(content):
        with pytest.raises(Refused, match=r"^The document"):
            import_openapi(msgspec.json.encode(content))
        return
    result = import_openapi(msgspec.json.encode(content), base_url="https://b.example")
    sound(result)
    assert all(skipped.reason and "\n" not in skipped.reason for skipped in result.skipped)
