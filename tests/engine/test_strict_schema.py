"""JSON Schema in OpenAI's strict form, and what its nulls mean."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from engine.schemas import prepare
from engine.strict_schema import sparse_arguments, strict_schema
from tests.engine.actions_of import actions_of, plain

STRING = {"type": "string"}
NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}


def strict(properties: dict[str, Any], **schema: Any) -> Any:
    """Return the strict form of an object's properties, after what holds of every object in it was checked."""
    whole = {"type": "object", "properties": properties, **schema}
    before = copy.deepcopy(whole)
    form = strict_schema(whole)
    assert whole == before
    if form is None:
        return None
    assert_closed(form)
    return form["properties"]


def assert_closed(node: Any) -> None:
    if isinstance(node, list):
        for each in node:
            assert_closed(each)
    elif isinstance(node, dict):
        if "properties" in node and isinstance(node.get("required"), list):
            assert node["additionalProperties"] is False
            assert node["required"] == list(node["properties"])
        for each in node.values():
            assert_closed(each)


@pytest.mark.parametrize(
    ("stated", "optional"),
    [
        ({"type": "string", "default": "x", "minLength": 3}, {"type": ["string", "null"]}),
        ({"type": "string", "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"type": ["string", "null"], "description": "d"}, {"type": ["string", "null"], "description": "d"}),
        ({"const": "a"}, {"anyOf": [{"const": "a"}, {"type": "null"}]}),
        ({"$ref": "#/$defs/Node"}, {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}),
        ({"oneOf": [STRING, {"type": "integer"}]}, {"anyOf": [STRING, {"type": "integer"}, {"type": "null"}]}),
        ({"anyOf": [STRING, {"type": "null"}]}, {"anyOf": [STRING, {"type": "null"}]}),
        ({"type": "string", "format": "uuid"}, {"type": ["string", "null"], "format": "uuid"}),
        ({"type": "string", "format": "uri"}, {"type": ["string", "null"]}),
        ({"type": "array", "items": STRING}, {"type": ["array", "null"], "items": STRING}),
        ({"allOf": [STRING], "description": "d"}, {"type": ["string", "null"], "description": "d"}),
        (
            {"type": "object", "properties": {"a": STRING}, "required": ["a"]},
            {
                "type": ["object", "null"],
                "properties": {"a": STRING},
                "required": ["a"],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_what_may_be_left_out_may_be_null(stated: dict[str, Any], optional: dict[str, Any]) -> None:
    assert strict({"p": stated}, **{"$defs": {"Node": NODE}}) == {"p": optional}


def test_what_is_required_stays_as_it_is() -> None:
    assert strict({"p": STRING, "q": STRING}, required=["p"]) == {"p": STRING, "q": {"type": ["string", "null"]}}


def test_references_stay_and_have_nothing_beside_them() -> None:
    properties = {"a": {"$ref": "#/definitions/Node", "description": "d"}, "b": {"$ref": "#"}}
    node = {"type": "object", "properties": {"next": {"$ref": "#/definitions/Node"}}}
    form = strict_schema(
        {"type": "object", "properties": properties, "required": ["a", "b"], "definitions": {"Node": node}}
    )
    assert form is not None
    assert form["properties"] == {
        "a": {"anyOf": [{"$ref": "#/$defs/Node"}], "description": "d"},
        "b": {"$ref": "#"},
    }
    assert form["$defs"]["Node"]["required"] == ["next"]


@pytest.mark.parametrize(
    "stated",
    [
        {},
        True,
        {"description": "anything"},
        {"type": "object"},
        {"type": "object", "properties": {"a": STRING}, "additionalProperties": True},
        {"type": "object", "additionalProperties": STRING},
        {"type": "object", "properties": {"a": STRING}, "patternProperties": {"^x": STRING}},
        {"type": "array"},
        {"type": "array", "prefixItems": [STRING]},
        {"type": ["object", "string"]},
        {"allOf": [STRING, {"maxLength": 3}]},
        {"$ref": "#/$defs/Missing"},
        {"$ref": "#/properties/other"},
        {"$ref": "https://elsewhere.test"},
    ],
)
def test_what_the_form_cannot_say_has_none(stated: Any) -> None:
    assert strict({"p": stated, "other": STRING}) is None
    (action,) = actions_of({"name": "act", "parameters": {"type": "object", "properties": {"p": stated}}})
    prepared = prepare([action], "openai", strict=True)
    assert prepared.functions[0]["function"]["strict"] is False
    assert prepared.functions[0]["function"]["parameters"] is action.shown
    assert prepared.strict == frozenset()


def test_bounds_of_depth_and_number() -> None:
    deep: dict[str, Any] = STRING
    for _ in range(12):
        deep = {"type": "object", "properties": {"p": deep}}
    assert strict({"p": deep}) is None
    assert strict({f"p{number}": STRING for number in range(5001)}) is None
    assert strict({f"p{number}": STRING for number in range(5000)}) is not None


def test_each_family_says_strict_in_its_own_place() -> None:
    action = plain({"x": STRING})
    parameters = {
        "type": "object",
        "properties": {"x": {"type": ["string", "null"]}},
        "required": ["x"],
        "additionalProperties": False,
    }
    chat = prepare([action], "openai", strict=True)
    assert chat.functions == [
        {"type": "function", "function": {"name": "act", "description": "", "parameters": parameters, "strict": True}}
    ]
    assert chat.strict == {"act"}
    assert prepare([action], "openai.responses", strict=True).functions == [
        {"type": "function", "name": "act", "description": "", "parameters": parameters, "strict": True}
    ]
    for family in ("anthropic", "google", "mcp"):
        assert prepare([action], family, strict=True) == prepare([action], family)


def test_actions_without_parameters_are_strict() -> None:
    (action,) = actions_of("a")
    assert prepare([action], "openai", strict=True).strict == {"a"}


SCHEMA = {
    "type": "object",
    "properties": {
        "must": STRING,
        "may": STRING,
        "nullable": {"type": ["string", "null"]},
        "one_of": {"enum": ["a", None]},
        "inner": {"type": "object", "properties": {"a": STRING, "b": STRING}, "required": ["a"]},
        "list": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        "either": {"anyOf": [STRING, {"type": "object", "properties": {"x": STRING}}]},
    },
    "required": ["must"],
    "$defs": {"Node": NODE},
}


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ({"must": "x", "may": None}, {"must": "x"}),
        ({"must": None}, {"must": None}),
        ({"nullable": None, "one_of": None}, {"nullable": None, "one_of": None}),
        ({"inner": {"a": None, "b": None}}, {"inner": {"a": None}}),
        ({"inner": None, "list": None}, {}),
        ({"list": [{"next": {"next": None}}, None]}, {"list": [{"next": {}}, None]}),
        ({"either": {"x": None}}, {"either": {}}),
        ({"unknown": None}, {"unknown": None}),
    ],
)
def test_a_null_that_stands_for_nothing_sent_is_left_out(sent: dict[str, Any], meant: dict[str, Any]) -> None:
    before = copy.deepcopy(sent)
    assert sparse_arguments(sent, SCHEMA) == meant
    assert sent == before


def test_arguments_without_such_nulls_are_the_same_object() -> None:
    sent = {"must": "x", "inner": {"a": "x"}, "list": [{"next": {}}]}
    assert sparse_arguments(sent, SCHEMA) is sent
