"""Streamed deltas become calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.call import ToolCall, parse_calls
from engine.parsing import ToolActionParser
from engine.stream import CallAssembler, parse_stream
from engine.stream.sse import SseDecoder

SHARED = Path(__file__).parents[2].parent / "shared" / "payloads" / "provider_calls.jsonl"
DONE = "data: [DONE]\n\n"


def sse(*events: dict[str, Any]) -> str:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


def delta(*items: dict[str, Any], finish: str | None = None, choice: int = 0) -> dict[str, Any]:
    return {"choices": [{"index": choice, "delta": {"tool_calls": list(items)}, "finish_reason": finish}]}


def piece(index: Any = ..., call_id: Any = ..., name: Any = ..., arguments: Any = ...) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not ...}
    item: dict[str, Any] = {"function": function} if function else {}
    return item | {key: value for key, value in (("index", index), ("id", call_id)) if value is not ...}


def chat(*items: dict[str, Any]) -> list[ToolCall]:
    """Return the calls of a stream with one piece a frame."""
    return parse_stream([*(delta(item) for item in items), delta(finish="tool_calls")], "openai")


def triples(calls: Sequence[ToolCall]) -> list[tuple[Any, Any, Any]]:
    assert not any(call.cut_off for call in calls)
    return [(call.id, call.name, call.arguments) for call in calls]


@pytest.mark.shared
def test_every_recorded_stream_gives_its_calls_and_none_of_the_providers_own() -> None:
    if not SHARED.exists():
        pytest.skip(f"{SHARED} is not there")
    rows = [row for row in map(json.loads, SHARED.read_text().splitlines()) if row["family"].endswith(".stream")]
    with_calls = 0
    total = 0
    for row in rows:
        for family in (row["family"].removesuffix(".stream"), row["family"].partition(".")[0]):
            calls = parse_stream([row["response"]], family)
            assert [(call.name, call.arguments) for call in calls] == [
                (expected["name"], expected["arguments"]) for expected in row["calls"]
            ], row["id"]
            for call, expected in zip(calls, row["calls"], strict=True):
                assert call.id == expected["id"] if expected["id"] is not None else call.id, row["id"]
                assert not call.cut_off
        total += len(row["calls"])
        with_calls += bool(row["calls"])
    assert (with_calls, total) == (15, 18)


@pytest.mark.shared
def test_a_recorded_stream_cut_anywhere_gives_whole_calls_or_refused_ones() -> None:
    if not SHARED.exists():
        pytest.skip(f"{SHARED} is not there")
    rows = [row for row in map(json.loads, SHARED.read_text().splitlines()) if row["family"].endswith(".stream")]
    for row in rows:
        family = row["family"].removesuffix(".stream")
        body = row["response"].encode()
        whole = parse_stream([body], family)
        for end in range(0, len(body), 97):
            calls = parse_stream([body[:end]], family)
            assert all(call.cut_off or call in whole for call in calls), (row["id"], end)


def test_behaviour_043_complete_arguments_that_come_twice_are_one_call() -> None:
    text = '{"path":"/"}'
    assert triples(chat(piece(0, "c1", "ls", text), piece(0, arguments=text))) == [("c1", "ls", text)]
    # Two pieces that are equal, but no object yet, are two pieces.
    assert triples(chat(piece(0, "c1", "f", '{"a":"'), piece(0, arguments="x"), piece(0, arguments="x"))) == [
        ("c1", "f", '{"a":"xx')
    ]


def test_behaviour_044_pieces_of_one_index_are_joined_and_frames_without_an_index_are_calls_of_their_own() -> None:
    joined = chat(piece(0, "c1", "ls", '{"pa'), piece(0, arguments='th":"/"}'))
    assert triples(joined) == [("c1", "ls", '{"path":"/"}')]
    apart = chat(piece(name="ls", arguments='{"a":1}'), piece(name="ls", arguments='{"a":1}'))
    assert triples(apart) == [(None, "ls", '{"a":1}')] * 2


def test_case_stream_02_interleaved_blocks_keep_their_own_pieces() -> None:
    def start(index: int, block: dict[str, Any]) -> dict[str, Any]:
        return {"type": "content_block_start", "index": index, "content_block": block}

    def part(index: int, text: str) -> dict[str, Any]:
        change = {"type": "input_json_delta", "partial_json": text} if index else {"type": "text_delta", "text": text}
        return {"type": "content_block_delta", "index": index, "delta": change}

    events = [
        start(0, {"type": "text", "text": ""}),
        start(1, {"type": "tool_use", "id": "t1", "name": "weigh", "input": {}}),
        start(2, {"type": "tool_use", "id": "t2", "name": "lift", "input": {}}),
        part(1, '{"bay":'),
        part(0, "let me"),
        part(2, '{"kg":'),
        part(1, "3}"),
        part(0, " see"),
        part(2, "40}"),
        *({"type": "content_block_stop", "index": index} for index in range(3)),
    ]
    expected = [("t1", "weigh", '{"bay":3}'), ("t2", "lift", '{"kg":40}')]
    assert triples(parse_stream(events, "anthropic")) == expected
    assert triples(parse_stream([sse(*events)], "anthropic")) == expected
    # The second block's end never came; the first is whole.
    first, second = parse_stream(events[:-1], "anthropic")
    assert (first.cut_off, second.cut_off) == (False, True)


def test_case_stream_03_a_new_id_at_the_same_index_is_a_new_call() -> None:
    calls = chat(piece(0, "k1", "weigh", '{"bay":1}'), piece(0, "k2", "weigh", '{"bay":2}'))
    assert triples(calls) == [("k1", "weigh", '{"bay":1}'), ("k2", "weigh", '{"bay":2}')]


@pytest.mark.parametrize("index", [None, ...])
def test_case_stream_03_without_an_index_the_id_tells_calls_apart(index: Any) -> None:
    calls = chat(
        piece(index, "k1", "weigh", '{"bay"'),
        piece(index, "k2", "lift", "{}"),
        piece(index, "k1", arguments=":1}"),
    )
    assert triples(calls) == [("k1", "weigh", '{"bay":1}'), ("k2", "lift", "{}")]


def test_case_stream_03_an_empty_id_later_is_the_same_call() -> None:
    calls = chat(piece(0, "k1", "weigh", "{"), piece(0, "", arguments='"bay":1'), piece(0, "", "", "}"))
    assert triples(calls) == [("k1", "weigh", '{"bay":1}')]


@pytest.mark.parametrize(
    "pieces",
    [
        [piece(0, "k1", "weigh", "{"), piece(0, "k1", "weigh", '"bay":1}')],
        [piece(0, "k1", "wei"), piece(0, name="gh", arguments='{"bay":1}')],
        [piece(0, "k1", arguments='{"bay"'), piece(0, name="weigh", arguments=":1}")],
    ],
    ids=["name repeated", "name split", "arguments first"],
)
def test_case_stream_03_names_and_arguments_come_in_any_order(pieces: list[dict[str, Any]]) -> None:
    assert triples(chat(*pieces)) == [("k1", "weigh", '{"bay":1}')]


@pytest.mark.parametrize(
    "pieces",
    [
        [piece(0, "k1", "weigh", '{"bay":1}'), piece(0, name="lift", arguments='{"kg":1}')],
        [piece(None, "k1", "weigh", "{"), piece(None, "k2", "lift", "{"), piece(None, arguments="}")],
        [piece(0, "k1", "weigh", {"bay": 1}), piece(0, arguments={"bay": 2})],
        [piece(0, "k1", "weigh", {"bay": 1}), piece(0, arguments='{"bay":2}')],
    ],
    ids=["another name", "a piece of either", "another object", "another object as text"],
)
def test_case_stream_03_calls_that_cannot_be_told_apart_are_refused(pieces: list[dict[str, Any]]) -> None:
    assert any(call.cut_off for call in chat(*pieces))


def test_parallel_calls_with_one_id_at_their_own_indexes_stay_apart() -> None:
    calls = chat(piece(0, "k1", "weigh", '{"bay":1}'), piece(1, "k1", "weigh", '{"bay":2}'))
    assert triples(calls) == [("k1", "weigh", '{"bay":1}'), ("k1", "weigh", '{"bay":2}')]


def test_objects_as_arguments_the_old_form_and_custom_tools_are_taken() -> None:
    assert triples(chat(piece(0, "k1", "weigh", {"bay": 1}))) == [("k1", "weigh", {"bay": 1})]
    old = [{"choices": [{"delta": {"function_call": part}}]} for part in ({"name": "a"}, {"arguments": "{}"})]
    assert triples(parse_stream([*old, delta(finish="function_call")], "openai")) == [(None, "a", "{}")]
    custom = [{"index": 0, "id": "k", "custom": part} for part in ({"name": "sql", "input": "sel"}, {"input": "ect"})]
    assert triples(chat(*custom)) == [("k", "sql", "select")]


def test_what_must_go_back_to_the_provider_is_kept() -> None:
    item = piece(0, "k1", "a", "{}") | {"extra_content": {"google": {"thought_signature": "s"}}}
    assert chat(item)[0].extra == {"extra_content": {"google": {"thought_signature": "s"}}}
    parts = [{"functionCall": {"name": "a", "args": {}}, "thoughtSignature": "t"}]
    (call,) = parse_stream([{"candidates": [{"content": {"parts": parts}}]}], "google")
    assert call.extra == {"thoughtSignature": "t"}


@pytest.mark.parametrize(
    ("events", "ends"),
    [
        ([delta(piece(0, "k1", "a", '{"x":1}'))], [DONE, sse(delta(finish="stop"))]),
        ([delta(piece(0, "k1", "a", ""))], [DONE]),
    ],
)
def test_a_call_is_cut_off_until_its_end_is_seen(events: list[dict[str, Any]], ends: list[str]) -> None:
    assert parse_stream(events, "openai")[0].cut_off
    assert not parse_stream(events, "openai", complete=True)[0].cut_off
    for end in ends:
        assert not parse_stream([*events, end], "openai")[0].cut_off


@pytest.mark.parametrize("arguments", ["", '{"path":"/', '{"path":"/"}', None])
def test_a_call_that_was_cut_off_is_refused_not_repaired(arguments: Any) -> None:
    (call,) = parse_stream([sse(delta(piece(0, "k1", "rm", arguments)))], "openai")
    parsed = ToolActionParser().parse(call, {"rm": ("t1", "rm")})
    assert (parsed.tool_id, parsed.action_name, parsed.arguments) == ("t1", "rm", {})
    assert parsed.problem is not None
    assert '"rm"' in parsed.problem
    assert parsed.raw == (arguments or "")


def test_arguments_that_never_came_before_the_token_limit_are_not_an_empty_object() -> None:
    (call,) = parse_stream([delta(piece(0, "k1", "rm", "")), delta(finish="length")], "openai")
    assert call.cut_off
    message = {"tool_calls": [{"id": "k", "function": {"name": "rm", "arguments": ""}}]}
    assert parse_calls({"choices": [{"message": message, "finish_reason": "length"}]}, "openai")[0].cut_off
    assert not parse_calls({"choices": [{"message": message, "finish_reason": "tool_calls"}]}, "openai")[0].cut_off
    block = {"type": "tool_use", "id": "k", "name": "rm", "input": {}}
    assert parse_calls({"content": [block], "stop_reason": "max_tokens"}, "anthropic")[0].cut_off
    item = {"type": "function_call", "call_id": "k", "name": "rm", "arguments": "", "status": "incomplete"}
    assert parse_calls({"output": [item]}, "openai.responses")[0].cut_off


def test_a_frame_that_cannot_be_read_spoils_the_calls_that_had_not_ended() -> None:
    whole = {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "a", "name": "a"}}
    body = sse(whole, {"type": "content_block_stop", "index": 0}, {**whole, "index": 1})
    calls = parse_stream([body, "data: <html>502\n\n", sse({"type": "message_stop"})], "anthropic")
    assert [call.cut_off for call in calls] == [False, True]


def responses(*events: tuple[str, dict[str, Any]]) -> list[ToolCall]:
    return parse_stream([{"type": f"response.{kind}", **content} for kind, content in events], "openai")


def test_responses_are_told_by_their_events_and_ended_by_their_items() -> None:
    item = {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "a", "arguments": ""}
    added = ("output_item.added", {"output_index": 0, "item": item})
    web = ("output_item.added", {"output_index": 1, "item": {"type": "web_search_call", "id": "ws"}})
    parts = [("function_call_arguments.delta", {"output_index": 0, "delta": text}) for text in ('{"x"', ":1}")]
    done = ("output_item.done", {"output_index": 0, "item": {**item, "arguments": '{"x":1}', "status": "completed"}})
    assert triples(responses(added, web, *parts, done)) == [("c1", "a", '{"x":1}')]
    assert responses(added, *parts)[0].cut_off
    assert triples(responses(added, *parts, ("completed", {"response": {"output": []}}))) == [("c1", "a", '{"x":1}')]
    whole = {"output": [{**item, "arguments": '{"x":2}'}]}
    assert triples(responses(added, ("completed", {"response": whole}))) == [("c1", "a", '{"x":2}')]
    broken = ("output_item.done", {"output_index": 0, "item": {**item, "status": "incomplete"}})
    assert responses(added, broken)[0].cut_off


def test_google_parts_are_whole_and_have_the_ids_of_the_whole_response() -> None:
    parts = [{"functionCall": {"name": "weigh", "args": {"bay": bay}}} for bay in (1, 2, 2)]
    chunks = [{"candidates": [{"content": {"parts": [part]}}]} for part in parts]
    assert parse_stream(chunks, "google") == parse_calls({"candidates": [{"content": {"parts": parts}}]}, "google")
    partial = {"functionCall": {"name": "weigh", "partialArgs": [{"jsonPath": "$.bay"}], "willContinue": True}}
    assert parse_stream([{"candidates": [{"content": {"parts": [partial]}}]}], "google")[0].cut_off


def test_the_first_alternative_with_calls_counts() -> None:
    events = [delta(choice=0), delta(piece(0, "k1", "a", "{}"), choice=1), delta(piece(0, "k2", "b", "{}"), choice=2)]
    assert [call.name for call in parse_stream(events, "openai", complete=True)] == ["a"]


def test_an_unknown_family_follows_openai_and_nothing_is_no_calls() -> None:
    assert CallAssembler("somebody").finish() == []
    assert parse_stream([delta(piece(0, "k1", "a", "{}")), DONE], "somebody")[0].name == "a"


def test_calls_can_be_looked_at_while_they_come() -> None:
    assembler = CallAssembler("openai")
    assembler.feed(delta(piece(0, "k1", "a", '{"x')))
    assert [(call.name, call.arguments, call.cut_off) for call in assembler.calls()] == [("a", '{"x', True)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_server_sent_events_are_read_as_the_standard_has_them(end: str) -> None:
    lines = [
        "\ufeff: a comment",
        "event: x",
        "data: one",
        "id: 7",
        "data:two",
        "data",
        "",
        "",
        "retry: 5",
        "",
        "data: é",
    ]
    body = end.join([*lines, "", ""])
    for size in (1, 2, 3, 1000):
        decoder = SseDecoder()
        encoded = body.encode()
        found = [data for at in range(0, len(encoded), size) for data in decoder.feed(encoded[at : at + size])]
        assert found + decoder.flush() == ["one\ntwo\n", "é"]


def test_a_last_event_without_its_blank_line_is_read_too() -> None:
    decoder = SseDecoder()
    assert decoder.feed("data: [DONE]") == []
    assert decoder.flush() == ["[DONE]"]
    assert decoder.flush() == []
