"""Schemas as they are written: JSON Schema 2020-12 for what is sent, self-contained, bounded, always valid."""

from __future__ import annotations

import copy
import time
from typing import Any

import jsonschema_rs
import pytest

from engine.api.importing.imported import Unimportable
from engine.api.importing.resolution import References
from engine.api.importing.schemas import MAX_NODES, Schemas
from engine.schemas import prepare
from tests.engine.api.importing.documents import body_of, document, imported, operation, problem, sound

ABOUT = {"title": "T", "description": "D"}


def written(schema: Any, *, with_siblings: bool = False, **components: Any) -> dict[str, Any]:
    content = {"components": {"schemas": components}}
    before = copy.deepcopy((schema, content))
    schemas = Schemas(References(content), with_siblings=with_siblings)
    result = schemas.written(schema)
    whole = {**result.schema, "$defs": schemas.definitions(result.uses)}
    jsonschema_rs.validator_for(whole)
    assert (schema, content) == before
    return result.schema


TABLE: list[tuple[Any, Any]] = [
    ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
    ({"type": "string", "x-nullable": True}, {"type": ["string", "null"]}),
    ({"nullable": True}, {}),
    (
        {"nullable": True, "oneOf": [{"type": "string"}, {"type": "integer"}], **ABOUT},
        {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}], **ABOUT},
    ),
    (
        {"nullable": True, "allOf": [{"$ref": "#/components/schemas/A"}], "description": "D"},
        {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}], "description": "D"},
    ),
    ({"$ref": "#/components/schemas/A", "nullable": True}, {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "null"}]}),
    ({"allOf": [{"$ref": "#/components/schemas/A"}], "description": "D"}, {"$ref": "#/$defs/A", "description": "D"}),
    (
        {"minimum": 1, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": False},
        {"exclusiveMinimum": 1, "maximum": 9},
    ),
    ({"exclusiveMinimum": 1, "exclusiveMaximum": 2.5}, {"exclusiveMinimum": 1, "exclusiveMaximum": 2.5}),
    (
        {"minimum": "1", "maxLength": -1, "minItems": 2.0, "maxItems": 1.5, "multipleOf": 0, "uniqueItems": "yes"},
        {"minItems": 2},
    ),
    ({"maximum": 1e400, "maxLength": 2**70}, {}),
    ({"minimum": -(10**400), "multipleOf": 10**400, "maxItems": 10**400}, {}),
    (
        {"oneOf": [{"type": "string"}, {"type": "string", "format": "date"}]},
        {"anyOf": [{"type": "string"}, {"type": "string", "format": "date"}]},
    ),
    (
        {"anyOf": [{"minimum": 1}, {"maximum": 0}], "oneOf": [{"minimum": 2}, {"maximum": 3}]},
        {"anyOf": [{"minimum": 1}, {"maximum": 0}], "allOf": [{"anyOf": [{"minimum": 2}, {"maximum": 3}]}]},
    ),
    ({"oneOf": [{"type": "string"}]}, {"type": "string"}),
    ({"type": "file"}, {"type": "string", "format": "binary"}),
    ({"type": "Float"}, {"type": "number"}),
    ({"type": ["string", "null", "nonsense"]}, {"type": ["string", "null"]}),
    ({"type": "nonsense"}, {}),
    ({"type": "string", "enum": [1, True, "a", None]}, {"type": "string", "enum": ["1", "true", "a", None]}),
    ({"enum": []}, {}),
    (
        {"enum": [{"$ref": "#/x"}], "const": {"type": ["a"]}, "default": {"nullable": True}},
        {"enum": [{"$ref": "#/x"}], "const": {"type": ["a"]}, "default": {"nullable": True}},
    ),
    ({"pattern": "^(?=a)[a-z]+$"}, {"pattern": "^(?=a)[a-z]+$"}),
    ({"pattern": "([a-z"}, {}),
    (
        {
            "discriminator": {},
            "xml": {},
            "example": 1,
            "examples": [1],
            "externalDocs": {},
            "x-a": 1,
            "$id": "http://a",
        },
        {},
    ),
    ({"description": " " + "d" * 300}, {"description": "d" * 197 + "..."}),
    ({"default": "d" * 600}, {}),
    ({"items": [{"type": "string"}, {"type": "integer"}]}, {"prefixItems": [{"type": "string"}, {"type": "integer"}]}),
    ({"type": "array", "items": None}, {"type": "array"}),
    ({"additionalProperties": False}, {"additionalProperties": False}),
    (
        {"additionalProperties": {"type": "string", "nullable": True}},
        {"additionalProperties": {"type": ["string", "null"]}},
    ),
    ({"patternProperties": {"^a": {"type": "string"}, "(": {}}}, {"patternProperties": {"^a": {"type": "string"}}}),
    ({"items": True}, {"items": {}}),
    ({"items": False}, {"items": {"not": {}}}),
    (
        {"properties": {"a": {"required": True}, "b": None}, "required": ["b", "b", 7]},
        {"properties": {"a": {}, "b": {}}, "required": ["b", "a"]},
    ),
    ({"required": True}, {}),
    (True, {}),
    (None, {}),
]


@pytest.mark.parametrize(("schema", "expected"), TABLE)
def test_keywords(schema: Any, expected: Any) -> None:
    assert written(schema, A={"type": "object"}) == expected


def test_beside_a_reference_everything_counts_from_3_1_on() -> None:
    schema = {"$ref": "#/components/schemas/A", "description": "D", "minimum": 3}
    assert written(schema, A={}) == {"$ref": "#/$defs/A", "description": "D"}
    assert written(schema, with_siblings=True, A={}) == {"$ref": "#/$defs/A", "description": "D", "minimum": 3}


def test_names_are_no_keywords() -> None:
    names = ("title", "type", "default", "description", "$ref", "required", "properties", "nullable", "$defs", "value")
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": list(names)}
    assert written(schema) == schema
    assert list(
        imported(document({"/x": {"post": operation(requestBody=body_of(schema))}})).actions["act"]["body"][
            "properties"
        ]
    ) == [name.replace("$ref", "ref").replace("$defs", "defs") for name in names]


def test_what_the_server_alone_sets_is_left_out_at_any_depth() -> None:
    own = {"type": "string", "readOnly": True}
    schema = {
        "type": "object",
        "properties": {
            "id": own,
            "by_ref": {"$ref": "#/components/schemas/Own"},
            "list": {"type": "array", "items": {"properties": {"id": own, "n": {}}, "required": ["id", "n"]}},
        },
        "required": ["id", "by_ref", "undeclared"],
        "allOf": [{"properties": {"stamp": own}}, {"required": ["stamp", "list"]}],
    }
    result = written(schema, Own=own)
    assert result["properties"] == {"list": {"type": "array", "items": {"properties": {"n": {}}, "required": ["n"]}}}
    assert result["required"] == ["undeclared"]
    assert result["allOf"] == [{"properties": {}}, {"required": ["list"]}]


CYCLES = {
    "Node": {
        "type": "object",
        "properties": {"value": {}, "children": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}}},
    },
    "A": {"properties": {"b": {"$ref": "#/components/schemas/B"}}},
    "B": {"properties": {"a": {"$ref": "#/components/schemas/A"}}},
    "Pet": {
        "oneOf": [{"$ref": "#/components/schemas/Cat"}, {"type": "string"}],
        "properties": {"name": {"type": "string"}},
    },
    "Cat": {"allOf": [{"$ref": "#/components/schemas/Pet"}, {"type": "object"}]},
    "Self": {"allOf": [{"$ref": "#/components/schemas/Self"}]},
}


def test_cyclic_schemas_stay_definitions() -> None:
    names = [name for name in CYCLES if name != "Self"]
    properties = {name: {"$ref": f"#/components/schemas/{name}"} for name in names}
    content = document(
        {"/x": {"post": operation(requestBody=body_of({"type": "object", "properties": properties}))}},
        components={"schemas": CYCLES},
    )
    result = imported(content)
    definition = result.actions["act"]
    assert set(definition["body"]["$defs"]) == set(names)
    assert problem(definition, {"Node": {"children": [{"children": [{"value": 1}]}]}, "Pet": {"name": "m"}}) is None
    assert problem(definition, {"Node": {"children": [{"children": [7]}]}}) is not None
    for family in ("openai", "google", "anthropic"):
        assert prepare(sound(result), family, strict=True).functions
    for name in CYCLES:
        body = operation(requestBody=body_of({"$ref": f"#/components/schemas/{name}"}))
        imported(document({"/x": {"post": body}}, components={"schemas": CYCLES}))


def test_references_that_only_refer_to_each_other_are_refused() -> None:
    loop: dict[str, Any] = {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}}
    with pytest.raises(Unimportable, match="leads back to itself"):
        written({"properties": {"a": {"$ref": "#/components/schemas/A"}}}, **loop)


def test_definitions_are_bounded_and_the_nearest_are_spelt_out() -> None:
    count = 3 * MAX_NODES
    chain = {f"S{n}": {"properties": {"next": {"$ref": f"#/components/schemas/S{n + 1}"}}} for n in range(count)}
    schemas = Schemas(References({"components": {"schemas": {**chain, f"S{count}": {}}}}), with_siblings=False)
    definitions = schemas.definitions(schemas.written({"$ref": "#/components/schemas/S0"}).uses)
    assert len(definitions) == MAX_NODES // 2 + 1
    assert definitions[f"S{MAX_NODES // 2}"] == {"description": "Not spelt out here: any value is taken."}
    jsonschema_rs.validator_for({"$ref": "#/$defs/S0", "$defs": definitions})


def test_a_schema_that_branches_without_end_takes_no_time() -> None:
    wide = {f"S{n}": {"allOf": [{"$ref": f"#/components/schemas/S{n + 1}"}] * 8, "type": "object"} for n in range(18)}
    started = time.perf_counter()
    body = operation(requestBody=body_of({"$ref": "#/components/schemas/S0"}))
    result = imported(document({"/x": {"post": body}}, components={"schemas": {**wide, "S18": {"type": "object"}}}))
    assert result.actions["act"]["body_whole"] == "body"
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"items": deep}
    with pytest.raises(Unimportable, match="nested more than 64 levels deep"):
        written(deep)
    assert time.perf_counter() - started < 5


def test_definitions_of_one_name_stay_apart() -> None:
    references = References({"a": {"X": {"type": "string"}}, "b": {"X": {"type": "integer"}}, "c": {"Ø Ø": {}}})
    schemas = Schemas(references, with_siblings=False)
    refs = ["#/a/X", "#/b/X", "#/c/%C3%98%20%C3%98"]
    assert [schemas.name_of(ref) for ref in refs] == ["X", "X_2", "C3_98_20_C3_98"]
    assert schemas.definitions(["X", "X_2"]) == {"X": {"type": "string"}, "X_2": {"type": "integer"}}
