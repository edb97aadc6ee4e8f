"""Function schemas as a model sees them."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.actions import Action, resolve_actions
from engine.client_tools import resolve_client_tools
from engine.rows import ActionSettings, ToolRow
from engine.schemas import prepare
from events.errors import Refused
from tests.engine.actions_of import ConfiguredTool, PlainTool, actions_of, configured, plain

ROOT = Path(__file__).parents[2]


def shown(action: Action) -> dict[str, Any]:
    """Return the parameters as openai's form has them."""
    parameters: dict[str, Any] = prepare([action], "openai").functions[0]["function"]["parameters"]
    return parameters


def test_behaviour_001_an_empty_toolset_gives_nothing() -> None:
    for family in ("openai", "openai.responses", "anthropic", "google", "mcp", "nobody"):
        prepared = prepare([], family)
        assert (prepared.functions, prepared.names) == ([], {})


def test_behaviour_002_one_action_gives_one_entry_and_its_route() -> None:
    prepared = prepare(actions_of({"name": "do_thing", "description": "Does it."}), "openai")
    assert prepared.functions == [
        {
            "type": "function",
            "function": {
                "name": "do_thing",
                "description": "Does it.",
                "parameters": {"type": "object", "properties": {}, "required": []},
            },
        }
    ]
    assert prepared.names == {"do_thing": ("t1", "do_thing")}


def test_behaviour_003_only_an_explicit_false_leaves_an_action_out() -> None:
    row = actions_of({"name": "a", "active": True}, {"name": "b", "active": False}, {"name": "c"})
    assert list(prepare(row, "openai").names) == ["a", "c"]
    assert [action.active for action in row] == [True, False, True]
    switched = actions_of("a", "b", settings=[ActionSettings(name="a", active=False), ActionSettings(name="b")])
    assert list(prepare(switched, "openai").names) == ["b"]


def test_behaviour_004_inactive_actions_are_no_duplicates() -> None:
    rows = (*actions_of("search"), *actions_of({"name": "search", "active": False}, row="t2", name="other"))
    assert prepare(rows, "openai").names == {"search": ("t1", "search")}


def test_behaviour_015_rows_without_actions_are_skipped_and_others_stay() -> None:
    bare = resolve_actions(ToolRow(id="a", name="api_tool"), ConfiguredTool, [])
    broken = resolve_actions(ToolRow(id="b", name="api_tool", config={"actions": None}), ConfiguredTool, [])
    nothing = resolve_actions(ToolRow(id="c", name="x"), PlainTool, None)
    assert (bare, broken, nothing) == ((), (), ())
    assert list(prepare((*bare, *broken, *nothing, *actions_of("a")), "openai").names) == ["a"]


def test_behaviour_017_hidden_properties_are_neither_shown_nor_required() -> None:
    action = plain({"h": {"type": "string", "filled_by_llm": False, "required": True}, "v": {"type": "string"}})
    assert shown(action) == {"type": "object", "properties": {"v": {"type": "string"}}, "required": []}


def test_behaviour_018_flags_are_taken_out_and_required_goes_where_it_belongs() -> None:
    stated = {
        "type": "string",
        "description": "d",
        "enum": ["a"],
        "filled_by_llm": True,
        "value": "v",
        "required": True,
    }
    assert shown(plain({"p": stated})) == {
        "type": "object",
        "properties": {"p": {"type": "string", "description": "d", "enum": ["a"]}},
        "required": ["p"],
    }


def test_behaviour_019_a_requests_groups_become_one_flat_object() -> None:
    groups = {
        name: {"type": "object", "properties": {name[0]: {"type": "string"}}}
        for name in ("parameters", "body", "headers", "query_params")
    }
    assert list(shown(configured(groups))["properties"]) == ["q", "h", "b", "p"]


def test_behaviour_020_a_property_of_two_groups_is_one_and_both_kinds_of_required_count() -> None:
    action = configured(
        {
            "query_params": {"properties": {"id": {"type": "string", "required": True}}},
            "body": {
                "properties": {"id": {"type": "string", "required": True}, "command": {"type": "string"}},
                "required": ["command"],
            },
        }
    )
    assert shown(action)["required"] == ["id", "command"]
    assert list(shown(action)["properties"]) == ["id", "command"]


def test_behaviour_021_an_action_without_groups_takes_nothing() -> None:
    assert shown(actions_of("a")[0]) == {"type": "object", "properties": {}, "required": []}
    assert shown(configured({"url": "https://x.test"})) == {"type": "object", "properties": {}, "required": []}


def test_behaviour_022_a_client_tools_schema_passes_unchanged() -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "value": 1}},
        "required": ["city"],
    }
    ((_, action),) = resolve_client_tools([{"type": "function", "function": {"name": "w", "parameters": schema}}])
    assert shown(action) is schema
    ((_, bare),) = resolve_client_tools([{"name": "w"}])
    assert shown(bare) == {}


def test_behaviour_023_client_tools_are_keyed_by_place() -> None:
    call_shape = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {}}}
    resolved = resolve_client_tools([call_shape, {"name": "n"}, {"description": "no name"}], "u1")
    assert [row.id for row, _ in resolved] == ["ct0", "ct1", "ct2"]
    assert [row.name for row, _ in resolved] == ["f", "n", "clienttool2"]
    assert [action.name for _, action in resolved] == ["f", "n", "clienttool2"]
    assert [action.description for _, action in resolved] == ["d", "", "no name"]
    assert all(row.client_side and row.user_id == "u1" and action.client_side for row, action in resolved)


def test_client_tools_come_in_every_providers_form() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    forms: list[dict[str, Any]] = [
        {"type": "function", "name": "f", "parameters": schema},
        {"name": "f", "input_schema": schema},
        {"function": {"name": "f", "parameters": schema}},
    ]
    assert all(action.parameters == schema for _, action in resolve_client_tools(forms))
    odd: list[Any] = [{"function": "x", "name": 5, "description": 7, "parameters": "p"}]
    assert [(a.name, a.description, a.parameters) for _, a in resolve_client_tools(odd)] == [("clienttool0", "", {})]
    with pytest.raises(Refused, match="client tool 1 must be"):
        resolve_client_tools([{"name": "a"}, "b"])  # type: ignore[list-item]


def builtin(description: str, *, synthesised: bool, approval: bool = False) -> tuple[Action, ...]:
    entry = {"name": "create_artifact", "description": description, "require_approval": approval}
    row = "default" if synthesised else "0"
    return actions_of(entry, row=row, name="artifact_generator", synthesised=synthesised)


@pytest.mark.parametrize("stored_first", [True, False])
def test_behaviour_025_a_builtin_arriving_twice_is_the_stored_one(stored_first: bool) -> None:
    stored, default = builtin("mine", synthesised=False), builtin("standard", synthesised=True)
    prepared = prepare((*stored, *default) if stored_first else (*default, *stored), "openai")
    assert prepared.names == {"create_artifact": ("0", "create_artifact")}
    assert prepared.functions[0]["function"]["description"] == "mine"


def test_behaviour_027_two_stored_rows_are_never_collapsed() -> None:
    rows = (*actions_of("run", row="1", name="mcp_tool"), *actions_of("run", row="2", name="mcp_tool"))
    assert len(prepare(rows, "openai").functions) == 2


def test_behaviour_028_stored_rows_come_first_otherwise_stable() -> None:
    rows = (
        *actions_of("read_webpage", row="d", name="read_webpage", synthesised=True),
        *actions_of("x", row="1", name="a"),
        *actions_of("y", row="2", name="b"),
    )
    assert list(prepare(rows, "openai").names) == ["x", "y", "read_webpage"]


def test_hidden_and_pinned_properties_vanish_from_every_family() -> None:
    settings = ActionSettings(name="act", pinned={"fixed": 1}, presets={"size": 3}, hidden=("secret",))
    properties = {name: {"type": "integer"} for name in ("fixed", "secret", "size", "free")}
    action = plain(properties, settings=settings, required=["fixed", "secret", "size"])
    assert shown(action)["required"] == ["size"]
    for family in ("openai", "openai.responses", "anthropic", "google", "mcp"):
        text = str(prepare([action], family).functions)
        assert "fixed" not in text
        assert "secret" not in text
        assert "size" in text
    assert action.pinned == {"fixed": 1}
    assert action.hidden == {"fixed", "secret"}


def test_the_whole_schema_passes_through_and_is_never_changed() -> None:
    schema = {
        "type": "object",
        "properties": {
            "node": {"$ref": "#/$defs/Node"},
            "kind": {"enum": ["a", "b"], "default": "a"},
            "deep": {"type": "object", "properties": {"n": {"type": "integer", "required": True}}},
            "flag": {"type": "string", "required": True, "value": "v", "filled_by_llm": False},
        },
        "required": ["node"],
        "additionalProperties": False,
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
    }
    before = copy.deepcopy(schema)
    (action,) = actions_of({"name": "act", "parameters": schema})
    for family in ("openai", "anthropic", "google", "mcp"):
        assert prepare([action], family) == prepare([action], family)
    assert schema == before
    parameters = shown(action)
    assert parameters["$defs"] == schema["$defs"]
    assert parameters["additionalProperties"] is False
    assert parameters["properties"]["kind"] == {"enum": ["a", "b"], "default": "a"}
    # The other way of stating required means the same, inside too.
    assert parameters["properties"]["deep"]["required"] == ["n"]
    assert parameters["properties"]["deep"]["properties"] == {"n": {"type": "integer"}}
    assert parameters["required"] == ["node"]


def test_case_schema_06_parameters_named_like_keywords_stay_parameters() -> None:
    inner = {"type": "object", "properties": {"title": {"type": "string", "title": "T"}}, "required": ["title"]}
    properties = {
        "title": {"type": "string", "title": "Title"},
        "type": {"type": "string"},
        "default": {"type": "integer", "default": 3},
        "description": {"type": "string"},
        "$ref": {"type": "string"},
        "required": {"type": "boolean"},
        "value": {"type": "string"},
        "filled_by_llm": {"type": "boolean"},
        "properties": inner,
    }
    action = plain(properties, required=list(properties))
    assert shown(action)["properties"] == properties
    assert shown(action)["required"] == list(properties)
    (declaration,) = prepare([action], "google").functions[0]["functionDeclarations"]
    parameters = declaration["parameters"]
    assert set(parameters["properties"]) == set(properties)
    assert set(parameters["required"]) == set(properties)
    assert parameters["properties"]["$ref"] == {"type": "string"}
    assert parameters["properties"]["properties"]["properties"]["title"]["type"] == "string"


def test_each_family_has_its_own_form() -> None:
    action = plain({"x": {"type": "string"}})
    schema = {"type": "object", "properties": {"x": {"type": "string"}}, "required": []}
    assert prepare([action], "openai.responses").functions == [
        {"type": "function", "name": "act", "description": "", "parameters": schema, "strict": False}
    ]
    assert prepare([action], "anthropic").functions == [{"name": "act", "description": "", "input_schema": schema}]
    assert prepare([action], "mcp").functions == [{"name": "act", "description": "", "inputSchema": schema}]
    assert prepare([action], "google").functions == [
        {
            "functionDeclarations": [
                {
                    "name": "act",
                    "description": "",
                    "parameters": {"type": "object", "properties": {"x": {"type": "string"}}},
                }
            ]
        }
    ]
    assert prepare([action], "nobody") == prepare([action], "openai")
    ((_, bare),) = resolve_client_tools([{"name": "w"}])
    assert prepare([bare], "anthropic").functions[0]["input_schema"] == {"type": "object"}
    assert "parameters" not in prepare([bare], "google").functions[0]["functionDeclarations"][0]


def test_the_encoded_functions_go_into_a_body_as_they_are() -> None:
    action = plain({"x": {"type": "string", "description": "\N{SNOWMAN}"}})
    for family in ("openai", "openai.responses", "anthropic", "google", "mcp"):
        prepared = prepare([action], family)
        body = msgspec.json.encode({"model": "m", "tools": prepared.encoded})
        assert msgspec.json.decode(body) == {"model": "m", "tools": prepared.functions}
        assert bytes(prepared.encoded) in body
        assert prepared.encoded is prepared.encoded
    assert bytes(prepare([], "openai").encoded) == b"[]"


def test_types_in_a_list_are_read_in_both_dialects() -> None:
    action = plain({"x": {"type": ["string", "null"], "required": True, "value": ""}})
    assert shown(action)["properties"] == {"x": {"type": ["string", "null"]}}
    assert shown(action)["required"] == ["x"]


ONCE_MORE = """
import sys
from engine.schemas import prepare
from tests.engine.actions_of import actions_of
entry = {"parameters": {"type": "object", "properties": {
    "a": {"type": "integer", "minimum": 1, "maximum": 3, "format": "int32", "title": "t", "description": "d"},
    "b": {"type": ["string", "null"], "minLength": 1, "maxLength": 2, "pattern": "x", "enum": ["x", 1]},
}}}
entries = [{**entry, "name": name} for name in ("find", "find!", "\\u691c\\u7d22", "x" * 70)]
rows = [a for n in range(9) for a in actions_of(*entries, row=str(n), name=f"tool {n % 3}")]
for family in ("openai", "openai.responses", "anthropic", "google", "mcp"):
    sys.stdout.write(bytes(prepare(rows, family, strict=True).encoded).decode())
"""


def test_preparations_are_the_same_to_the_byte_in_every_process() -> None:
    texts = {
        subprocess.run(
            [sys.executable, "-c", ONCE_MORE],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(texts) == 1
    assert len(texts.pop()) > 1000
