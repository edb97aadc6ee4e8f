"""Whatever a model or its provider sends, parsing answers and never raises."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.arguments import ArgumentChecker, sort_arguments
from engine.call import ToolCall, parse_calls
from engine.families import FAMILIES
from engine.journalled import journal_form
from engine.parsing import ToolActionParser
from engine.refusals import arguments_text, refusal_text
from engine.repair import repaired
from events.errors import Refused
from events.keys import call_digest
from tests.engine.actions_of import plain

FAMILY = st.sampled_from([*FAMILIES, "nobody"])
TEXT = st.text(alphabet=st.characters(codec=None), max_size=20)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=12
)
PIECES = st.lists(st.sampled_from([*'{}[]":,\\ ud8e1\n\x00\ufffd\ud800', "NaN", "1e999", "null"]), max_size=30)
SENT = JSON | PIECES.map("".join) | st.binary(max_size=30) | JSON.map(json.dumps)
ROUTES = {"act": ("t1", "act")}


@pytest.fixture(autouse=True, scope="module")
def quiet() -> Iterator[None]:
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@given(st.sampled_from(["act", "act_1"]) | TEXT, SENT, FAMILY)
def test_parsing_never_raises_and_what_it_gives_can_be_stored(name: str, sent: Any, family: str) -> None:
    parsed = ToolActionParser(family).parse(ToolCall(name=name, arguments=sent), ROUTES)
    assert parsed.problem is not None or parsed.arguments is None or isinstance(parsed.arguments, dict)
    if name == "act":
        assert parsed.resolved
    kept = journal_form(parsed.arguments)
    assert msgspec.json.decode(msgspec.json.encode(kept)) == kept
    assert call_digest(parsed.tool_id, "act", kept)
    assert journal_form(kept) is kept
    for text in (refusal_text(name, ["act"]), arguments_text(name, parsed.problem or "p", ["act"])):
        assert len(text) < 1000


@given(st.dictionaries(st.text(max_size=5), st.recursive(st.integers() | st.text(max_size=9), st.lists, max_leaves=6)))
def test_arguments_sent_as_json_text_arrive_as_they_are(arguments: dict[str, Any]) -> None:
    for text in (json.dumps(arguments), json.dumps(arguments, ensure_ascii=False), json.dumps(arguments).encode()):
        parsed = ToolActionParser().parse(ToolCall(name="act", arguments=text), ROUTES)
        assert parsed.arguments == arguments
        assert parsed.problem is None


@given(JSON, FAMILY)
def test_any_response_gives_calls_or_one_refusal(response: Any, family: str) -> None:
    try:
        calls = parse_calls(response, family)
    except Refused:
        assert not isinstance(response, dict)
    else:
        assert calls == []


SHAPES = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(st.fixed_dictionaries({"message": st.fixed_dictionaries({"tool_calls": JSON})}) | JSON),
        "output": st.lists(
            st.fixed_dictionaries({"type": st.just("function_call"), "call_id": JSON, "name": JSON}) | JSON
        ),
        "content": st.lists(st.fixed_dictionaries({"type": st.just("tool_use"), "name": JSON, "input": JSON}) | JSON),
        "candidates": st.lists(
            st.fixed_dictionaries(
                {
                    "content": st.fixed_dictionaries(
                        {"parts": st.lists(st.fixed_dictionaries({"functionCall": JSON, "thoughtSignature": JSON}))}
                    )
                }
            )
        ),
    },
)


@given(SHAPES, FAMILY)
def test_half_right_responses_never_raise(response: dict[str, Any], family: str) -> None:
    for call in parse_calls(response, family):
        assert call.name is None or isinstance(call.name, str)
        assert call.id is None or isinstance(call.id, str)
    assert parse_calls(response, family) == parse_calls(response, family)


@given(JSON)
def test_checking_and_sorting_never_raise(sent: Any) -> None:
    action = plain({"a": {"type": "string"}, "b": {"type": "integer", "filled_by_llm": False, "value": 3}})
    arguments = journal_form(sent)
    problem = ArgumentChecker().validate(action, arguments)
    if problem is None:
        assert sort_arguments(action, arguments).kwargs == {**arguments, "b": 3}


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4), st.integers(0, 1000), st.sampled_from(["", "```json\n"]))
def test_what_is_cut_off_is_never_completed(arguments: dict[str, Any], end: int, before: str) -> None:
    whole = json.dumps(arguments)
    text = before + whole[: end % len(whole)]
    assert repaired(text) is None
    assert repaired(text + ",") is None


@given(st.dictionaries(st.text(max_size=4), st.recursive(st.integers() | st.text(max_size=6), st.lists), min_size=1))
def test_mended_arguments_are_those_that_were_meant(arguments: dict[str, Any]) -> None:
    whole = json.dumps(arguments)
    for text in (json.dumps(whole), whole * 2, f"```\n{whole}\n```", f"{whole[:-1]},}}"):
        found = repaired(text)
        # The library reads some escapes otherwise; then nothing is mended.
        assert found is None or journal_form(found.value) == journal_form(arguments)
        assert found is not None or text.endswith(",}")


@given(PIECES.map("".join) | JSON.map(json.dumps) | TEXT)
def test_mending_never_raises(text: str) -> None:
    found = repaired(text)
    if found is not None:
        assert msgspec.json.encode(journal_form(found.value))
