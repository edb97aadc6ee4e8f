"""JSON Schema in Google's subset."""

from __future__ import annotations

from typing import Any

import pytest

from engine.google_schema import google_schema


def google(definition: dict[str, Any], **root: Any) -> Any:
    """Return the form of one property."""
    form = google_schema({"type": "object", "properties": {"p": definition}, **root})
    assert form is not None
    return form["properties"]["p"]


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"type": ["string", "null"], "description": "m"}, {"type": "string", "nullable": True, "description": "m"}),
        (
            {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None, "description": "kg"},
            {"type": "integer", "nullable": True, "description": "kg"},
        ),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"const": "lift"}, {"type": "string", "enum": ["lift"]}),
        ({"type": "string", "examples": [{"type": ["a", "b"]}]}, {"type": "string"}),
        ({"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "string", "format": "uri"}, {"type": "string"}),
        ({"allOf": [{"type": "string"}], "description": "d"}, {"type": "string", "description": "d"}),
        (True, {"type": "object"}),
    ],
)
def test_case_schema_08_nullable_and_unions(stated: Any, expected: dict[str, Any]) -> None:
    assert google(stated) == expected


def test_case_schema_07_references_are_put_in_place_and_cycles_cut() -> None:
    defs = {
        "Dock": {"type": "object", "properties": {"bay": {"type": "integer"}}},
        "Node": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}},
        "A": {"$ref": "#/$defs/B"},
        "B": {"$ref": "#/$defs/A"},
        "a/b": {"type": "string"},
    }
    root = {"$defs": defs}
    dock = {"type": "object", "properties": {"bay": {"type": "integer"}}}
    assert google({"$ref": "#/$defs/Dock"}, **root) == dock
    assert google({"$ref": "#/$defs/Dock", "description": "d"}, **root) == {**dock, "description": "d"}
    assert google({"$ref": "#/$defs/Missing"}, **root) == {"type": "object"}
    assert google({"$ref": "#/$defs/a~1b"}, **root) == {"type": "string"}
    for definition in ({"$ref": "#/$defs/Node"}, {"$ref": "#/$defs/A"}):
        text = str(google(definition, **root))
        assert "$ref" not in text
        assert len(text) < 2000


def test_case_schema_07_many_definitions_that_refer_to_each_other_stay_bounded() -> None:
    names = [f"D{number}" for number in range(20)]
    definition = {"type": "object", "properties": {name: {"$ref": f"#/$defs/{name}"} for name in names}}
    text = str(google({"$ref": "#/$defs/D0"}, **{"$defs": dict.fromkeys(names, definition)}))
    assert "$ref" not in text
    assert len(text) < 200_000
