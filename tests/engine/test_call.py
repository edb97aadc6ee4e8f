"""Whole provider responses become calls."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.call import ToolCall, parse_calls, stable_call_id, unique_ids
from engine.families import FAMILIES, family_of
from events.errors import Refused

SHARED = Path(__file__).parents[2].parent / "shared" / "payloads" / "provider_calls.jsonl"


def chat(*tool_calls: Any, **message: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": list(tool_calls), **message}}]}


def function(name: Any, arguments: Any, call_id: Any = "c1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def gemini(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}}]}


def pairs(calls: list[ToolCall]) -> list[tuple[Any, Any, Any]]:
    return [(call.id, call.name, call.arguments) for call in calls]


@pytest.mark.shared
def test_every_recorded_response_parses_to_its_calls() -> None:
    if not SHARED.exists():
        pytest.skip(f"{SHARED} is not there")
    rows = [json.loads(line) for line in SHARED.read_text().splitlines()]
    whole = [row for row in rows if not row["family"].endswith(".stream")]
    assert len(whole) == 95
    for row in whole:
        for family in {row["family"], row["family"].partition(".")[0]}:
            before = copy.deepcopy(row["response"])
            calls = parse_calls(row["response"], family)
            assert row["response"] == before
            assert len(calls) == len(row["calls"]), row["id"]
            for call, expected in zip(calls, row["calls"], strict=True):
                assert (call.name, call.arguments) == (expected["name"], expected["arguments"]), row["id"]
                assert call.id == expected["id"] if expected["id"] is not None else call.id, row["id"]


def test_openai_chat_keeps_the_text_the_order_and_an_absent_field() -> None:
    response = chat(function("a", '{"x": 1}'), function("b", "", call_id=""), {"id": "c3", "function": {"name": "c"}})
    assert pairs(parse_calls(response, "openai")) == [("c1", "a", '{"x": 1}'), ("", "b", ""), ("c3", "c", None)]
    assert parse_calls(response, "openai.chat") == parse_calls(response, "openai")


def test_openai_chat_takes_the_old_single_function_call_and_a_custom_one() -> None:
    old = {"choices": [{"message": {"function_call": {"name": "a", "arguments": "{}"}}}]}
    assert pairs(parse_calls(old, "openai")) == [(None, "a", "{}")]
    custom = chat({"id": "c1", "type": "custom", "custom": {"name": "a", "input": "free text"}})
    assert pairs(parse_calls(custom, "openai")) == [("c1", "a", "free text")]


def test_the_first_alternative_that_has_calls_counts() -> None:
    response = {
        "choices": [
            {"message": {"content": "let me see"}},
            {"message": {"tool_calls": [function("a", "{}")]}},
            {"message": {"tool_calls": [function("b", "{}")]}},
        ]
    }
    assert [call.name for call in parse_calls(response, "openai")] == ["a"]


def test_openai_responses_are_told_by_their_shape_and_what_the_provider_runs_is_left_out() -> None:
    response = {
        "object": "response",
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "x"}},
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "a", "arguments": '{"x":1}'},
            {"type": "mcp_call", "id": "m", "name": "b", "arguments": "{}"},
            {"type": "custom_tool_call", "id": "ct", "call_id": "c2", "name": "d", "input": "raw", "namespace": "n"},
        ],
    }
    calls = parse_calls(response, "openai")
    assert pairs(calls) == [("c1", "a", '{"x":1}'), ("c2", "d", "raw")]
    assert calls[1].extra == {"namespace": "n"}
    assert parse_calls(response, "openai.responses") == calls


def test_anthropic_takes_its_own_calls_only() -> None:
    response = {
        "content": [
            {"type": "text", "text": "hm"},
            {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {"query": "x"}},
            {"type": "mcp_tool_use", "id": "mcp", "name": "echo", "server_name": "s", "input": {}},
            {"type": "tool_use", "id": "tu", "name": "a", "input": {"x": 1}},
        ]
    }
    assert pairs(parse_calls(response, "anthropic")) == [("tu", "a", {"x": 1})]


def test_case_parse_08_google_calls_without_an_id_get_a_stable_one_of_their_own() -> None:
    response = gemini(
        {"functionCall": {"name": "weigh", "args": {"bay": 1}}},
        {"functionCall": {"name": "weigh", "args": {"bay": 2}}},
        {"functionCall": {"name": "weigh", "args": {"bay": 2}}},
        {"functionCall": {"id": "g-9", "name": "weigh", "args": {"bay": 1}}},
    )
    calls = parse_calls(response, "google")
    ids = [call.id for call in calls]
    assert len(set(ids)) == 4
    assert ids[3] == "g-9"
    assert not {"None", "null", "", "weigh", None} & set(ids)
    # The same response, parsed again from the journal, with its keys in another order.
    assert [call.id for call in parse_calls(json.loads(json.dumps(response, sort_keys=True)), "google")] == ids
    assert [call.arguments for call in calls] == [{"bay": 1}, {"bay": 2}, {"bay": 2}, {"bay": 1}]


def test_an_id_can_be_given_to_arguments_that_no_store_could_keep() -> None:
    assert stable_call_id(0, "\ud800", {"a": "\ud800"}) == stable_call_id(0, "\ud800", {"a": "\ud800"})


def test_google_thought_signatures_are_kept_and_both_spellings_read() -> None:
    wire = gemini({"functionCall": {"name": "a", "args": {}}, "thoughtSignature": "s1"}, {"text": "x"})
    dump = gemini({"function_call": {"name": "a", "args": {}}, "thought_signature": "s1"}, {"text": "x"})
    assert parse_calls(wire, "google") == parse_calls(dump, "google")
    assert parse_calls(wire, "google")[0].extra == {"thoughtSignature": "s1"}
    compatible = chat({**function("a", "{}"), "extra_content": {"google": {"thought_signature": "s2"}}})
    assert parse_calls(compatible, "openai")[0].extra == {"extra_content": {"google": {"thought_signature": "s2"}}}


def test_case_parse_06_big_integers_in_an_object_survive() -> None:
    big = 123456789012345678901234567890
    response = msgspec.json.decode(msgspec.json.encode(gemini({"functionCall": {"name": "a", "args": {"n": big}}})))
    assert parse_calls(response, "google")[0].arguments == {"n": big}


def test_case_parse_10_calls_that_share_an_id_are_both_kept_and_get_ids_of_their_own() -> None:
    response = chat(function("weigh", '{"bay":1}', call_id="k1"), function("weigh", '{"bay":2}', call_id="k1"))
    calls = parse_calls(response, "openai")
    assert pairs(calls) == [("k1", "weigh", '{"bay":1}'), ("k1", "weigh", '{"bay":2}')]
    assert [call.id for call in unique_ids(calls)] == ["k1", "k1#2"]
    taken = [ToolCall(id=given) for given in ("k1", "k1#2", "k1", "k1", "", "", None)]
    assert [call.id for call in unique_ids(taken)] == ["k1", "k1#2", "k1#3", "k1#4", "", "", None]


@pytest.mark.parametrize("response", [None, [], "text", 7, [{"choices": []}]])
def test_what_is_no_object_is_refused_in_one_line(response: Any) -> None:
    with pytest.raises(Refused) as caught:
        parse_calls(response, "openai")
    assert "\n" not in str(caught.value)
    assert "object" in str(caught.value)


@pytest.mark.parametrize("family", [*FAMILIES, "nobody"])
@pytest.mark.parametrize(
    "response",
    [
        {},
        {"choices": None},
        {"choices": [None, 7, {"message": None}, {"message": {"tool_calls": None}}, {"delta": {}}]},
        {"choices": [{"message": {"tool_calls": "x"}}, {"message": {"tool_calls": [None, "x"]}}]},
        {"output": None, "content": None, "candidates": None},
        {"output": [None, {}], "content": [None, {}], "candidates": [None, {}, {"content": None}]},
        {"candidates": [{"content": {"parts": None}}, {"content": {"parts": [None, {"functionCall": None}]}}]},
        {"error": {"message": "overloaded"}},
    ],
)
def test_bad_shapes_hold_no_calls(family: str, response: dict[str, Any]) -> None:
    assert parse_calls(response, family) == []


def test_a_call_with_broken_fields_is_kept_so_that_it_can_be_answered() -> None:
    response = chat({"id": "c1", "function": None}, {"id": 7, "function": {"name": 5, "arguments": {"x": 1}}})
    assert pairs(parse_calls(response, "openai")) == [("c1", None, None), ("7", "5", {"x": 1})]


def test_an_unknown_family_follows_openai() -> None:
    assert parse_calls(chat(function("a", "{}")), "deepseek") == parse_calls(chat(function("a", "{}")), "openai")
    assert [family_of(name) for name in ("openai.chat", "deepseek", "google")] == ["openai", "openai", "google"]
