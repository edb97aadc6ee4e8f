"""Arguments against their action: checked, filled in, sorted."""

from __future__ import annotations

import subprocess
import sys
import uuid
from typing import Any

import pytest

from engine.actions import Action, resolve_actions
from engine.arguments import ArgumentChecker, sort_arguments
from engine.client_tools import resolve_client_tools
from engine.journalled import TOO_DEEP
from engine.rows import ActionSettings, ToolRow
from tests.engine.actions_of import ConfiguredTool, actions_of, configured, plain


def problem(action: Action, arguments: Any) -> str:
    found = ArgumentChecker().validate(action, arguments)
    assert found is not None
    assert "\n" not in found
    return found


def accepts(action: Action, arguments: Any) -> bool:
    return ArgumentChecker().validate(action, arguments) is None


def settings(**fields: Any) -> ActionSettings:
    return ActionSettings(name="act", **fields)


TEXT = {"type": "string"}


def test_behaviour_075_a_preset_fills_what_was_not_sent_and_the_arguments_stay() -> None:
    for action in (
        plain({"p": {**TEXT, "value": "default_val", "required": True}}),
        plain({"p": TEXT}, settings=settings(presets={"p": "default_val"}), required=["p"]),
    ):
        sent: dict[str, Any] = {}
        assert accepts(action, sent)
        assert sort_arguments(action, sent).kwargs == {"p": "default_val"}
        assert sent == {}
        assert sort_arguments(action, {"p": "own"}).kwargs == {"p": "own"}


@pytest.mark.parametrize("value", [0, False, "", 0.0, [], {}])
def test_behaviour_076_a_falsy_value_counts_and_one_never_set_does_not(value: Any) -> None:
    assert sort_arguments(plain({"p": {"value": value}}), {}).kwargs == {"p": value}
    assert sort_arguments(plain({"p": TEXT}, settings=settings(presets={"p": value})), {}).kwargs == {"p": value}
    assert sort_arguments(configured({"body": {"properties": {"p": {"value": value}}}}), {}).body == {"p": value}
    for never in ({}, {"value": None}, {"type": "integer", "value": ""}):
        assert sort_arguments(plain({"p": never}), {}).kwargs == {}
    assert sort_arguments(plain({"p": {**TEXT, "filled_by_llm": False}}), {}).kwargs == {}


@pytest.mark.parametrize(
    "action",
    [
        plain({"mode": {**TEXT, "filled_by_llm": False, "value": "safe"}, "q": TEXT}),
        plain({"mode": TEXT, "q": TEXT}, settings=settings(pinned={"mode": "safe"})),
        plain({"mode": {**TEXT, "value": "safe"}, "q": TEXT}, settings=settings(hidden=("mode",))),
        plain({"q": TEXT}, settings=settings(pinned={"mode": "safe"})),
        configured({"body": {"properties": {"mode": {"filled_by_llm": False, "value": "safe"}, "q": TEXT}}}),
    ],
)
def test_behaviour_079_a_pinned_parameter_cannot_be_sent(action: Action) -> None:
    assert '"mode"' in problem(action, {"mode": "evil", "q": "x"})
    # The value that is pinned anyway is no exception: the model was never told the name.
    assert '"mode"' in problem(action, {"mode": "safe"})
    assert accepts(action, {"q": "x"})
    assert sort_arguments(action, {"q": "x"}).kwargs == {"mode": "safe", "q": "x"}


def test_a_hidden_parameter_without_a_value_is_neither_sent_nor_asked_for() -> None:
    action = plain({"h": {**TEXT, "filled_by_llm": False, "required": True}})
    assert accepts(action, {})
    assert '"h"' in problem(action, {"h": "x"})
    assert sort_arguments(action, {}).kwargs == {}


def test_behaviour_081_a_property_of_two_groups_is_set_in_both() -> None:
    action = configured({"query_params": {"properties": {"id": TEXT}}, "body": {"properties": {"id": TEXT, "n": {}}}})
    resolved = sort_arguments(action, {"id": "7", "n": 1})
    assert (resolved.query_params, resolved.body) == ({"id": "7"}, {"id": "7", "n": 1})
    assert resolved.kwargs == {"id": "7", "n": 1}
    assert resolved.buckets() == {"query_params": {"id": "7"}, "headers": {}, "body": {"id": "7", "n": 1}}


def test_what_one_group_pins_may_be_sent_to_another() -> None:
    action = configured(
        {
            "query_params": {"properties": {"id": {**TEXT, "filled_by_llm": False, "value": "owner"}}},
            "headers": {"properties": {"X-Mode": {**TEXT, "filled_by_llm": False, "value": "safe"}}},
            "body": {"properties": {"id": TEXT}},
        }
    )
    assert accepts(action, {"id": "model"})
    assert '"X-Mode"' in problem(action, {"X-Mode": "evil"})
    resolved = sort_arguments(action, {"id": "model"})
    assert (resolved.query_params, resolved.headers, resolved.body) == (
        {"id": "owner"},
        {"X-Mode": "safe"},
        {"id": "model"},
    )


def test_a_plain_tools_arguments_are_its_own() -> None:
    resolved = sort_arguments(plain({"a": TEXT}), {"a": "x", "undeclared": 1})
    assert resolved.kwargs == {"a": "x", "undeclared": 1}
    assert resolved.buckets() == {"parameters": {"a": "x", "undeclared": 1}}


def test_undeclared_names_are_refused_only_where_they_have_no_place() -> None:
    assert accepts(plain({"a": TEXT}), {"b": 1})
    assert "'b'" in problem(plain({"a": TEXT}, additionalProperties=False), {"b": 1})
    assert '"b"' in problem(configured({"body": {"properties": {"a": TEXT}}}), {"b": 1})


@pytest.mark.parametrize("arguments", [[1], "text", 5, None, True])
def test_what_is_no_object_is_a_problem(arguments: Any) -> None:
    assert "object" in problem(plain({}), arguments)
    assert "nested" in problem(plain({}), TOO_DEEP)


def test_a_problem_names_each_path_and_what_was_expected() -> None:
    action = plain(
        {
            "n": {"type": "integer", "maximum": 5},
            "deep": {"type": "object", "properties": {"list": {"type": "array", "items": TEXT}}},
            "mode": {"enum": ["fast", "slow"]},
        },
        required=["n"],
    )
    found = problem(action, {"deep": {"list": ["a", 2]}, "mode": "other"})
    for expected in ('"n" is a required', '"deep.list[1]"', '"string"', "a number was sent", '"mode"', "fast"):
        assert expected in found
    assert "5" in problem(action, {"n": 9})
    # What was sent is never in the text: it may be a secret, or long.
    assert "hunter2" not in problem(action, {"n": "hunter2"})
    assert len(problem(action, {"n": "x" * 100_000, "mode": "y" * 100_000})) < 600


def test_only_some_of_many_problems_are_listed() -> None:
    action = plain({f"p{number}": TEXT for number in range(50)})
    found = problem(action, {f"p{number}": number for number in range(50)})
    assert found.count("was sent") < 20
    assert "45 more" in found


def test_case_parse_05_a_doubly_encoded_value_is_refused_and_named_not_coerced() -> None:
    action = plain({"labels": {"type": "array", "items": TEXT}, "memo": TEXT})
    found = problem(action, {"labels": '["wet","heavy"]', "memo": "[1,2]"})
    assert '"labels"' in found
    assert '"array"' in found
    assert "a string was sent" in found
    assert "memo" not in found


def test_case_parse_06_nothing_is_coerced_and_big_integers_are_judged_exactly() -> None:
    action = plain({"pallet": {"type": "integer", "maximum": 123456789012345678901234567890}})
    assert accepts(action, {"pallet": 123456789012345678901234567890})
    assert not accepts(action, {"pallet": 123456789012345678901234567891})
    assert not accepts(action, {"pallet": "8765432109876543211"})
    assert not accepts(action, {"pallet": True})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "any"},
        {"properties": {"a": {"type": 7}}},
        {"properties": {"a": {"$ref": "#/$defs/Missing"}}},
        {"properties": {"a": {"pattern": "("}}},
        {"properties": {"a": {"$ref": "https://elsewhere.test/schema.json"}}},
        {"properties": {"a": {"const": "\ud800"}}},
    ],
)
def test_an_invalid_schema_is_the_tools_fault_and_nothing_is_fetched(schema: dict[str, Any]) -> None:
    ((_, action),) = resolve_client_tools([{"name": "act", "parameters": schema}])
    checker = ArgumentChecker()
    for _ in range(2):
        found = checker.validate(action, {"a": 1})
        assert found is not None
        assert "not valid" in found
        assert "owner" in found


def test_a_schema_of_an_unknown_dialect_is_read_as_the_newest() -> None:
    schema: dict[str, Any] = {"$schema": "https://elsewhere.test/dialect", "properties": {"a": TEXT}}
    (action,) = actions_of({"name": "act", "parameters": schema})
    assert accepts(action, {"a": "x"})
    assert not accepts(action, {"a": 1})


def test_what_the_owner_set_wrong_is_not_blamed_on_the_call() -> None:
    action = plain({"n": {"type": "integer"}}, settings=settings(pinned={"n": "seven"}))
    found = problem(action, {})
    assert "owner" in found
    assert "was sent" not in found


def test_values_json_lacks_are_judged_as_they_are_journalled() -> None:
    action = plain({"u": TEXT, "b": TEXT})
    assert accepts(action, {"u": uuid.UUID(int=1), "b": b"\x00\x01"})
    assert not accepts(plain({"u": {"type": "integer"}}), {"u": uuid.UUID(int=1)})


def test_a_changed_schema_is_compiled_anew() -> None:
    checker = ArgumentChecker()
    assert checker.validate(plain({"a": TEXT}), {"a": 1}) is not None
    assert checker.validate(plain({"a": {"type": "integer"}}), {"a": 1}) is None


def test_nothing_that_is_given_is_changed() -> None:
    row = ToolRow(id="r", name="api", config={"actions": {"a": {"body": {"properties": {"x": {"value": [1]}}}}}})
    (action,) = resolve_actions(row, ConfiguredTool, None)
    sort_arguments(action, {}).body["y"] = 1
    assert sort_arguments(action, {}).body == {"x": [1]}
    (own,) = actions_of("a")
    sort_arguments(own, {}).kwargs["y"] = 1
    assert sort_arguments(own, {}).kwargs == {}


def test_the_validator_is_loaded_only_when_something_is_validated() -> None:
    code = "import sys, engine.arguments; sys.exit('jsonschema_rs' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
