"""However a stream is cut into chunks, the calls are the same, and nothing that comes makes the assembler raise."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.families import FAMILIES
from engine.stream import CallAssembler, parse_stream

ARGUMENTS = st.dictionaries(st.text(max_size=4), st.text(max_size=8) | st.integers(), max_size=3)
CALLS = st.lists(st.tuples(st.text("abc", min_size=1, max_size=4), ARGUMENTS), min_size=1, max_size=4)
CUTS = st.lists(st.integers(0, 4000), max_size=30)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def body(calls: list[tuple[str, dict[str, Any]]], width: int) -> bytes:
    """Return a chat stream of these calls, their arguments in pieces of ``width``."""
    frames: list[str] = []
    for index, (name, arguments) in enumerate(calls):
        items: list[dict[str, Any]] = [{"index": index, "id": f"c{index}", "function": {"name": name, "arguments": ""}}]
        text = json.dumps(arguments, ensure_ascii=False)
        for at in range(0, len(text), width):
            items.append({"index": index, "function": {"arguments": text[at : at + width]}})
        frames += [json.dumps({"choices": [{"delta": {"tool_calls": [i]}}]}, ensure_ascii=False) for i in items]
    return "".join(f"data: {frame}\r\n\r\n" for frame in [*frames, "[DONE]"]).encode()


@given(CALLS, CUTS, st.integers(1, 9))
def test_any_split_of_a_stream_gives_the_same_calls(
    calls: list[tuple[str, dict[str, Any]]], cuts: list[int], width: int
) -> None:
    whole = body(calls, width)
    edges = [0, *sorted(cut % (len(whole) + 1) for cut in cuts), len(whole)]
    chunks = [whole[start:end] for start, end in itertools.pairwise(edges)]
    found = parse_stream(chunks, "openai")
    assert [(call.name, json.loads(call.arguments), call.cut_off) for call in found] == [
        (name, arguments, False) for name, arguments in calls
    ]


@given(CALLS, st.integers(0, 4000), st.integers(1, 9))
def test_a_stream_that_breaks_off_gives_no_whole_call_that_was_not_sent(
    calls: list[tuple[str, dict[str, Any]]], cut: int, width: int
) -> None:
    whole = body(calls, width)
    for call in parse_stream([whole[: cut % len(whole)]], "openai"):
        assert call.cut_off or cut % len(whole) > len(whole) - len("data: [DONE]\r\n\r\n")


EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(
            [
                "response.output_item.added",
                "response.output_item.done",
                "response.function_call_arguments.delta",
                "response.function_call_arguments.done",
                "response.completed",
                "content_block_start",
                "content_block_delta",
                "content_block_stop",
                "message_delta",
                "message_stop",
            ]
        ),
        "index": JSON,
        "output_index": JSON,
        "delta": JSON | st.fixed_dictionaries({"type": st.just("input_json_delta"), "partial_json": JSON}),
        "item": JSON | st.fixed_dictionaries({"type": st.just("function_call"), "id": JSON, "arguments": JSON}),
        "content_block": JSON | st.fixed_dictionaries({"type": st.just("tool_use"), "id": JSON, "input": JSON}),
        "response": JSON,
        "arguments": JSON,
        "choices": JSON
        | st.lists(
            st.fixed_dictionaries(
                {
                    "index": JSON,
                    "delta": JSON
                    | st.fixed_dictionaries(
                        {
                            "tool_calls": st.lists(
                                st.fixed_dictionaries(
                                    {
                                        "index": JSON,
                                        "id": JSON,
                                        "function": JSON | st.fixed_dictionaries({"name": JSON, "arguments": JSON}),
                                    }
                                )
                            )
                        }
                    ),
                    "finish_reason": JSON,
                }
            ),
            max_size=3,
        ),
        "candidates": JSON
        | st.lists(st.fixed_dictionaries({"content": st.fixed_dictionaries({"parts": st.lists(JSON)})}), max_size=2),
    },
)


@given(st.lists(EVENTS | JSON.map(json.dumps) | st.binary(max_size=20), max_size=6), st.sampled_from(FAMILIES))
def test_the_assembler_never_raises(chunks: list[Any], family: str) -> None:
    assembler = CallAssembler(family)
    for chunk in chunks:
        assembler.feed(chunk)
        assembler.calls()
    for call in assembler.finish():
        assert call.id is None or isinstance(call.id, str)
        assert call.name is None or isinstance(call.name, str)
