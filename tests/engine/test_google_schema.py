"""JSON Schema in Google's subset."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from engine.google_schema import google_schema
from engine.schemas import prepare
from tests.engine.actions_of import actions_of
from tests.engine.google_rules import broken_rules


def google(definition: Any, **root: Any) -> Any:
    """Return the form of one property, after what holds of any form was checked."""
    schema = {"type": "object", "properties": {"p": definition}, **root}
    before = copy.deepcopy(schema)
    form = google_schema(schema)
    assert form is not None
    assert broken_rules(form) == []
    assert schema == before
    assert google_schema(schema) == form
    return form["properties"]["p"]


STRING = {"type": "string"}
INTEGER = {"type": "integer"}


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"type": ["string", "null"], "description": "m"}, {"type": "string", "nullable": True, "description": "m"}),
        (
            {"anyOf": [INTEGER, {"type": "null"}], "default": None, "description": "kg"},
            {"type": "integer", "nullable": True, "description": "kg"},
        ),
        ({"oneOf": [STRING, INTEGER]}, {"anyOf": [STRING, INTEGER]}),
        (
            {"anyOf": [STRING, INTEGER, {"type": "null"}], "description": "d", "default": None},
            {
                "anyOf": [
                    {"type": "string", "nullable": True, "description": "d"},
                    {"type": "integer", "nullable": True, "description": "d"},
                ]
            },
        ),
        ({"type": ["string", "integer"], "maxLength": 3}, {"anyOf": [{"type": "string", "maxLength": 3}, INTEGER]}),
        ({"const": "lift"}, {"type": "string", "enum": ["lift"]}),
        ({"const": 3}, {"type": "integer", "description": "(one of: 3)"}),
        ({"enum": [1, 2, None]}, {"type": "integer", "nullable": True, "description": "(one of: 1, 2)"}),
        (
            {"type": "boolean", "enum": [True], "description": "d"},
            {"type": "boolean", "description": "d (one of: true)"},
        ),
        (
            {"enum": ["a", 1]},
            {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "description": "(one of: 1)"}]},
        ),
        ({"type": "string", "enum": ["a", "", None]}, {"type": "string", "enum": ["a"], "nullable": True}),
        ({"type": "string", "examples": [{"type": ["a", "b"]}]}, STRING),
        ({"type": "string", "default": {"$ref": "x"}}, STRING),
        ({"type": "array"}, {"type": "array", "items": STRING}),
        ({"type": "array", "prefixItems": [STRING, INTEGER]}, {"type": "array", "items": {"anyOf": [STRING, INTEGER]}}),
        ({"type": "array", "items": [INTEGER]}, {"type": "array", "items": INTEGER}),
        ({"type": "string", "format": "uri"}, STRING),
        ({"type": "integer", "format": "int64"}, {"type": "integer", "format": "int64"}),
        ({"type": "integer", "exclusiveMinimum": 0, "minimum": 1}, {"type": "integer", "minimum": 1}),
        ({"allOf": [STRING], "description": "d"}, {"type": "string", "description": "d"}),
        (
            {"type": "object", "properties": {"a": STRING}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"type": "object", "properties": {"a": STRING}},
        ),
        ({"default": 3}, INTEGER),
        ({"description": "anything"}, {"type": "string", "description": "anything"}),
        ({"title": {"type": "string"}}, STRING),
        ({"type": "null"}, {"type": "string", "nullable": True}),
        ({"type": "whatever"}, STRING),
        ({"additionalProperties": STRING}, {"type": "object"}),
        (True, STRING),
    ],
)
def test_case_schema_08_nullable_unions_and_values(stated: Any, expected: dict[str, Any]) -> None:
    assert google(stated) == expected


DOCK = {"type": "object", "properties": {"bay": INTEGER}, "required": ["bay"]}
DEFS = {
    "Dock": DOCK,
    "Heavy": {"allOf": [{"$ref": "#/$defs/Dock"}, {"properties": {"kg": INTEGER}, "required": ["kg"]}]},
    "Node": {
        "type": "object",
        "properties": {"value": STRING, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
    },
    "A": {"$ref": "#/$defs/B"},
    "B": {"$ref": "#/$defs/A"},
    "a/b": STRING,
    "per%cent": STRING,
}


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"$ref": "#/$defs/Dock"}, DOCK),
        ({"$ref": "#/$defs/Dock", "description": "d"}, {**DOCK, "description": "d"}),
        ({"type": "array", "items": {"$ref": "#/properties/limits"}}, {"type": "array", "items": INTEGER}),
        ({"$ref": "#/$defs/Missing"}, {"type": "object"}),
        ({"$ref": "https://elsewhere.test/schema"}, {"type": "object"}),
        ({"$ref": "#/$defs/a~1b"}, STRING),
        ({"anyOf": [{"$ref": "#/$defs/Dock"}, {"type": "null"}]}, {**DOCK, "nullable": True}),
        (
            {"$ref": "#/$defs/Heavy"},
            {"type": "object", "properties": {"bay": INTEGER, "kg": INTEGER}, "required": ["bay", "kg"]},
        ),
        ({"$ref": "#/$defs/A"}, {"type": "object"}),
    ],
)
def test_case_schema_07_references_are_put_in_place(stated: Any, expected: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"p": stated, "limits": INTEGER}, "$defs": DEFS}
    form = google_schema(schema)
    assert form is not None
    assert broken_rules(form) == []
    assert form["properties"]["p"] == expected


def test_case_schema_07_cycles_are_cut_once_their_shape_was_shown() -> None:
    tree = google({"$ref": "#/$defs/Node"}, **{"$defs": DEFS})
    child = tree["properties"]["children"]["items"]
    assert child["properties"]["value"] == STRING
    assert child["properties"]["children"]["items"] == {"type": "object"}
    itself = google({"$ref": "#"})
    assert len(str(itself)) < 1000


def test_case_schema_07_many_definitions_that_refer_to_each_other_stay_bounded() -> None:
    names = [f"D{number}" for number in range(20)]
    definition = {"type": "object", "properties": {name: {"$ref": f"#/$defs/{name}"} for name in names}}
    text = str(google({"$ref": "#/$defs/D0"}, **{"$defs": dict.fromkeys(names, definition)}))
    assert "$ref" not in text
    assert len(text) < 200_000


def test_case_schema_07_a_property_named_as_the_definitions_stays_one() -> None:
    form = google_schema({"type": "object", "properties": {"$defs": STRING, "$ref": {"$ref": "#/properties/$defs"}}})
    assert form == {"type": "object", "properties": {"$defs": STRING, "$ref": STRING}}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/Dock"},
        {"allOf": [{"$ref": "#/$defs/Dock"}]},
        {"oneOf": [{"$ref": "#/$defs/Dock"}, {"properties": {"bay": INTEGER}, "required": ["bay", "x"]}]},
    ],
)
def test_parameters_that_only_refer_or_combine_at_the_top_are_an_object_all_the_same(schema: dict[str, Any]) -> None:
    (action,) = actions_of({"name": "act", "parameters": {"type": "object", **schema, "$defs": DEFS}})
    for family, place in (("openai.responses", "parameters"), ("anthropic", "input_schema"), ("mcp", "inputSchema")):
        shown = prepare([action], family).functions[0][place]
        assert (shown["properties"], shown["required"]) == ({"bay": INTEGER}, ["bay"])
        # Providers refuse these at the top, and with them the whole request.
        assert not {"$ref", "allOf", "oneOf", "anyOf", "not", "enum"} & shown.keys()
    assert google_schema({**schema, "$defs": DEFS}) == DOCK
    # What is checked is the schema as it was declared.
    assert action.parameters.keys() > schema.keys()


def test_an_object_without_properties_is_left_out() -> None:
    assert google_schema({}) is None
    assert google_schema({"type": "object", "properties": {}}) is None
    assert google_schema({"type": "object", "properties": True}) is None


def test_deep_schemas_are_cut_at_a_bounded_depth() -> None:
    deep: dict[str, Any] = STRING
    for _ in range(5000):
        deep = {"type": "object", "properties": {"next": deep}}
    form = google_schema({"type": "object", "properties": {"p": deep}})
    assert str(form).count("next") < 20
