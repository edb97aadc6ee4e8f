"""Any schema a tool may declare becomes one that each family takes, without being changed itself."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.google_schema import google_schema
from engine.references import object_schema
from engine.schemas import prepare
from engine.strict_schema import sparse_arguments, strict_schema
from tests.engine.actions_of import actions_of
from tests.engine.google_rules import broken_rules

NAMES = st.sampled_from(["a", "b", "type", "title", "required", "properties", "$ref", "$defs", "default", "enum"])
REFERENCES = st.sampled_from(
    ["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/nowhere", "https://x.test", "#/$defs"]
)
VALUES: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x"]) | st.just([]) | st.just({"a": 1})
)
KINDS = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null", "any"])
LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": KINDS | st.lists(KINDS, max_size=3),
        "enum": st.lists(VALUES, max_size=3),
        "const": VALUES,
        "default": VALUES,
        "description": st.sampled_from(["d"]),
        "format": st.sampled_from(["date-time", "int32", "uri"]),
        "minimum": st.integers(0, 2) | VALUES,
        "$ref": REFERENCES | VALUES,
        "required": st.lists(NAMES, max_size=2) | VALUES,
    },
)


def nodes(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda leaf, more: {**leaf, **more},
        LEAVES,
        st.fixed_dictionaries(
            {},
            optional={
                "properties": st.dictionaries(NAMES, inner, max_size=3) | VALUES,
                "items": inner | st.lists(inner, max_size=2) | VALUES,
                "anyOf": st.lists(inner, max_size=3) | VALUES,
                "oneOf": st.lists(inner, max_size=2),
                "allOf": st.lists(inner, max_size=2) | VALUES,
                "additionalProperties": inner | st.booleans(),
                "$defs": st.dictionaries(NAMES, inner, max_size=2) | VALUES,
            },
        ),
    )


SCHEMAS = nodes(st.recursive(LEAVES | st.booleans() | VALUES, nodes, max_leaves=8))


@given(SCHEMAS)
def test_googles_form_keeps_googles_rules(schema: dict[str, Any]) -> None:
    before = copy.deepcopy(schema)
    form = google_schema(schema)
    assert schema == before
    if form is not None:
        assert broken_rules(form) == []
        assert set(form["properties"]) == set(object_schema(schema, schema)["properties"])
        assert json.dumps(google_schema(schema)) == json.dumps(form)
        assert len(json.dumps(form)) < 1_000_000


def objects(node: Any) -> list[dict[str, Any]]:
    """Return every object schema within a strict one."""
    if isinstance(node, list):
        return [found for each in node for found in objects(each)]
    if not isinstance(node, dict):
        return []
    own = [node] if isinstance(node.get("additionalProperties"), bool) else []
    named = [node[key] for key in ("properties", "$defs") if isinstance(node.get(key), dict)]
    inner = [each for group in named for each in group.values()]
    return own + objects([*inner, node.get("items"), node.get("anyOf")])


@given(SCHEMAS)
def test_the_strict_form_is_closed_and_requires_everything(schema: dict[str, Any]) -> None:
    before = copy.deepcopy(schema)
    form = strict_schema({**schema, "type": "object"})
    assert schema == before
    for each in objects(form):
        assert each["required"] == list(each["properties"])
        assert each["additionalProperties"] is False


@given(SCHEMAS, st.recursive(VALUES, lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=6))
def test_leaving_nulls_out_never_raises_and_only_takes_nulls_away(schema: dict[str, Any], sent: Any) -> None:
    sent = sent if isinstance(sent, dict) else {"a": sent}
    meant = sparse_arguments(sent, schema)
    assert sparse_arguments(meant, schema) is meant
    assert meant.keys() <= sent.keys()
    assert all(sent[name] is None for name in sent.keys() - meant.keys())


@given(SCHEMAS)
def test_any_declared_parameters_are_prepared_for_any_family(schema: dict[str, Any]) -> None:
    actions = actions_of({"name": "act", "parameters": schema})
    for family in ("openai", "openai.responses", "anthropic", "google", "mcp"):
        for strict in (False, True):
            prepared = prepare(actions, family, strict=strict)
            assert prepared.names == {"act": ("t1", "act")}
            assert json.loads(bytes(prepared.encoded)) == prepared.functions
