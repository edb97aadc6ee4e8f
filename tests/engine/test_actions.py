"""What the engine knows of an action: where it comes from, what overrides what, and its fingerprint."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec
import pytest

from engine.actions import Action, fingerprint, resolve_actions
from engine.offering import offered
from engine.rows import ActionSettings, ToolRow
from events.types import Effect
from tests.engine.actions_of import ConfiguredTool, PlainTool, actions_of, configured, plain


class Reader(PlainTool):
    effect: ClassVar[Effect] = "read"
    idempotent = True
    timeout = 5.0


class Asking(PlainTool):
    live_gate: ClassVar[Literal["adds", "replaces"]] = "replaces"

    def preview_decision(self, action_name: str, arguments: dict[str, Any]) -> tuple[bool, bool]:
        return False, False


def test_an_action_has_its_class_facts_unless_its_entry_says_otherwise() -> None:
    own, said = actions_of("a", {"name": "b", "effect": "destroy", "idempotent": False, "timeout": 9}, tool=Reader)
    assert (own.effect, own.idempotent, own.timeout) == ("read", True, 5.0)
    assert (said.effect, said.idempotent, said.timeout) == ("destroy", False, 9.0)


@pytest.mark.parametrize("effect", ["reed", "", 7, ["read"], False])
def test_an_effect_nobody_knows_is_taken_for_a_write(effect: Any) -> None:
    (action,) = actions_of({"name": "a", "effect": effect, "timeout": -1, "idempotent": "yes"}, tool=Reader)
    assert (action.effect, action.timeout, action.idempotent) == ("write", 5.0, True)


def test_either_source_is_enough_for_an_approval_unless_the_owner_waives_it() -> None:
    stated = {"name": "a", "require_approval": True}
    assert actions_of(stated)[0].require_approval
    waived = [ActionSettings(name="a", require_approval=False)]
    assert not actions_of(stated, settings=waived)[0].require_approval
    assert not actions_of("a", settings=waived)[0].require_approval
    # Whatever else is no yes is no waiver either.
    odd: Any = [ActionSettings(name="a", require_approval=0)]  # type: ignore[arg-type]
    assert actions_of(stated, settings=odd)[0].require_approval
    assert actions_of(stated, settings=[ActionSettings(name="a")])[0].require_approval
    assert actions_of("a", settings=[ActionSettings(name="a", require_approval=True)])[0].require_approval
    assert configured({"require_approval": True}).require_approval
    assert configured({}, settings=[ActionSettings(name="send", require_approval=True)]).require_approval
    assert not configured({}).require_approval
    waived = [ActionSettings(name="send", require_approval=False)]
    assert not configured({"require_approval": True}, settings=waived).require_approval


def test_a_live_gate_is_known_by_its_hook() -> None:
    assert actions_of("a", tool=Asking)[0].live_gate == "replaces"
    assert actions_of("a", tool=Asking)[0].has_live_gate
    assert not actions_of("a")[0].has_live_gate


def test_a_rows_list_of_actions_is_the_whole_list() -> None:
    settings = [ActionSettings(name="b", description="mine"), ActionSettings(name="gone")]
    (action,) = actions_of({"name": "a"}, {"name": "b", "description": "its own"}, settings=settings)
    assert (action.name, action.description) == ("b", "mine")
    assert actions_of("a", settings=[]) == ()


def test_entries_without_a_name_are_left_out_and_double_ones_count_once() -> None:
    odd: Any = [
        {"name": "a", "description": "first"},
        {"name": "a"},
        {"description": "x"},
        None,
        {"name": 7},
        {"name": ""},
    ]
    (action,) = resolve_actions(ToolRow(id="t", name="t"), PlainTool, odd)
    assert action.description == "first"
    assert resolve_actions(ToolRow(id="t", name="t"), PlainTool, "nonsense") == ()


def test_configured_actions_keep_their_request_and_their_groups() -> None:
    stated = {
        "url": "https://x.test/{id}",
        "method": "POST",
        "body_content_type": "application/json",
        "query_params": {"properties": {"id": {"type": "string"}, "v": {"filled_by_llm": False, "value": 2}}},
        "body": {"properties": {"id": {"type": "string"}}},
    }
    action = configured(stated)
    assert action.name == "send"
    assert action.request == {key: stated[key] for key in ("url", "method", "body_content_type")}
    assert [(group.name, group.visible, group.pinned) for group in action.groups] == [
        ("query_params", ("id",), {"v": 2}),
        ("body", ("id",), {}),
    ]
    assert action.hidden == {"v"}


def gated(*, synthesised: bool, approval: bool, row: str = "s") -> tuple[Action, ...]:
    return actions_of({"name": "run", "require_approval": approval}, row=row, name="coder", synthesised=synthesised)


@pytest.mark.parametrize(("stored", "default"), [(True, False), (False, True), (True, True), (False, False)])
def test_collapsing_never_loses_the_gate(stored: bool, default: bool) -> None:
    rows = (*gated(synthesised=True, approval=default, row="d"), *gated(synthesised=False, approval=stored))
    (action,) = offered(rows)
    assert action.tool_id == "s"
    assert action.require_approval is (stored or default), "a stored row's waiver is not the default tool's"


def test_two_defaults_of_one_tool_collapse_and_client_tools_never_do() -> None:
    twice = (*gated(synthesised=True, approval=False, row="d"), *gated(synthesised=True, approval=True, row="e"))
    (action,) = offered(twice)
    assert (action.tool_id, action.require_approval) == ("d", True)
    client = msgspec.structs.replace(twice[0], client_side=True, tool_id="ct0")
    assert len(offered((*gated(synthesised=False, approval=False), client))) == 2


def row_with(**config: Any) -> ToolRow:
    return ToolRow(id="t1", name="test_tool", config=config)


def test_a_fingerprint_follows_the_definition_and_the_public_config() -> None:
    action = plain({"x": {"type": "string"}})
    known = fingerprint(action, row_with(base="https://a.test"))
    assert len(known) == 64
    assert fingerprint(plain({"x": {"type": "string"}}), row_with(base="https://a.test")) == known
    changed = [
        fingerprint(action, row_with(base="https://b.test")),
        fingerprint(plain({"x": {"type": "integer"}}), row_with(base="https://a.test")),
        fingerprint(plain({"x": {"type": "string", "value": "v"}}), row_with(base="https://a.test")),
        fingerprint(plain({"x": {"type": "string", "filled_by_llm": False}}), row_with(base="https://a.test")),
        fingerprint(msgspec.structs.replace(action, description="new"), row_with(base="https://a.test")),
        fingerprint(msgspec.structs.replace(action, name="new"), row_with(base="https://a.test")),
    ]
    assert len({known, *changed}) == 7


def test_a_fingerprint_leaves_secrets_out() -> None:
    action = plain({"x": {"type": "string"}})
    known = fingerprint(action, row_with(base="u", nested={}))
    secrets = {"api_key": "a", "X-Auth-Token": "b", "password": "c", "encrypted_credentials": "d", "client_secret": "e"}
    assert fingerprint(action, row_with(base="u", nested=secrets, **secrets)) == known
    with_credentials = msgspec.structs.replace(row_with(base="u", nested={}), credentials="blob", version=9)
    assert fingerprint(action, with_credentials) == known
    assert fingerprint(action, row_with(base="u", nested={}, pin="1234"), secret_keys=("pin",)) == known
    # No secret's name: it counts.
    assert fingerprint(action, row_with(base="u", nested={}, max_tokens=5)) != known


def test_a_configured_actions_fingerprint_is_its_own() -> None:
    def of_first(other: str, url: str = "https://x.test") -> str:
        row = ToolRow(id="r", name="api_tool", config={"actions": {"a": {"url": url}, "b": {"url": other}}})
        return fingerprint(resolve_actions(row, ConfiguredTool, [])[0], row)

    assert of_first("https://1.test") == of_first("https://2.test")
    assert of_first("https://1.test") != of_first("https://1.test", url="https://y.test")


def test_a_fingerprint_takes_text_that_no_store_could_keep() -> None:
    assert fingerprint(plain({"x": {"description": "\ud800"}}), row_with(x="\ud800\x00"))
