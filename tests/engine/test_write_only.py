"""Which values a schema marks ``writeOnly``: in objects, lists, branches, references, whatever shape was sent."""

from __future__ import annotations

from typing import Any

import pytest

from engine.write_only import has_write_only, with_write_only

__all__ = ()

SECRET: dict[str, Any] = {"type": "string", "writeOnly": True}


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


NODE: dict[str, Any] = obj(secret=SECRET, next={"$ref": "#/$defs/node"})

CASES: tuple[tuple[str, dict[str, Any], Any, Any], ...] = (
    ("at the top", obj(p=SECRET, q={}), {"p": "x", "q": "x"}, {"p": "!", "q": "x"}),
    ("nested", obj(a=obj(p=SECRET, q={})), {"a": {"p": "x", "q": "x"}}, {"a": {"p": "!", "q": "x"}}),
    ("a whole object", obj(a={**obj(p={}), "writeOnly": True}), {"a": {"p": "x"}}, {"a": "!"}),
    (
        "in a list",
        obj(a={"items": obj(p=SECRET)}),
        {"a": [{"p": "x"}, {"q": "x"}, 1]},
        {"a": [{"p": "!"}, {"q": "x"}, 1]},
    ),
    ("in a tuple", obj(a={"prefixItems": [{}, SECRET], "items": {}}), {"a": ["x", "x", "x"]}, {"a": ["x", "!", "x"]}),
    ("in a list of old", obj(a={"items": [{}, SECRET]}), {"a": ["x", "x"]}, {"a": ["x", "!"]}),
    ("in one branch", obj(a={"anyOf": [{"type": "null"}, obj(p=SECRET)]}), {"a": {"p": "x"}}, {"a": {"p": "!"}}),
    ("combined", {"allOf": [obj(p=SECRET), obj(q={})]}, {"p": "x", "q": "x"}, {"p": "!", "q": "x"}),
    ("conditional", {"if": obj(q={}), "then": obj(p=SECRET)}, {"p": "x"}, {"p": "!"}),
    ("any other name", {**obj(q={}), "additionalProperties": SECRET}, {"p": "x", "q": "x"}, {"p": "!", "q": "x"}),
    ("by pattern", {"patternProperties": {"^p": SECRET, "(?<x": {}}}, {"p1": "x", "q": "x"}, {"p1": "!", "q": "x"}),
    ("referred to", {**obj(p={"$ref": "#/$defs/s~1t"}), "$defs": {"s/t": SECRET}}, {"p": "x"}, {"p": "!"}),
    (
        "of itself",
        {**obj(a={"$ref": "#/$defs/node"}), "$defs": {"node": NODE}},
        {"a": {"secret": "x", "next": {"secret": "x", "next": {"other": 1}}}},
        {"a": {"secret": "!", "next": {"secret": "!", "next": {"other": 1}}}},
    ),
    (
        "in a circle",
        {**obj(a={"$ref": "#/$defs/a"}), "$defs": {"a": {"$ref": "#/$defs/a"}, "b": SECRET}},
        {"a": 1},
        {"a": 1},
    ),
    ("elsewhere", {**obj(a={"$ref": "https://host/x"}), "x": {"writeOnly": True}}, {"a": 1}, {"a": 1}),
    ("no object", obj(p=SECRET), ["x"], ["x"]),
    ("nothing", obj(p=SECRET), None, None),
)


@pytest.mark.parametrize(("schema", "sent", "kept"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_marked_is_changed_and_nothing_else(schema: dict[str, Any], sent: Any, kept: Any) -> None:
    before = repr(sent)
    assert has_write_only(schema)
    assert with_write_only(schema, sent, lambda value: "!") == kept
    assert repr(sent) == before


def test_a_schema_without_marks_changes_nothing() -> None:
    schema = obj(p={"type": "string", "writeOnly": False, "description": "writeOnly"})
    assert not has_write_only(schema)
    assert with_write_only(schema, {"p": "x"}, lambda value: "!") == {"p": "x"}


def test_arguments_as_deep_as_they_may_be_are_walked() -> None:
    schema = {**obj(secret=SECRET, next={"$ref": "#"})}
    sent: Any = {"secret": "x"}
    for _ in range(199):
        sent = {"next": sent, "secret": "x"}
    assert "x" not in repr(with_write_only(schema, sent, lambda value: "!")).replace("next", "")
