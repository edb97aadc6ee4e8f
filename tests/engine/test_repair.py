"""Almost-JSON arguments: mended where there is one way to read them."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from engine.call import ToolCall
from engine.parsing import ParsedCall, ToolActionParser
from engine.repair import repaired

FENCE = "a Markdown fence around them was left out"
TWICE = "they were encoded as JSON twice"
COMMAS = "commas before a closing bracket were left out"


@pytest.mark.parametrize(
    ("text", "value", "note"),
    [
        (r'"{\"a\": 1}"', {"a": 1}, TWICE),
        (r'"{\"a\": \"\\u00e9\"}"', {"a": "é"}, TWICE),
        ('"{}"', {}, TWICE),
        ("{}{}", {}, "the same object came 2 times"),
        ('{"a":1,"b":[]} {"b":[],"a":1}\n{"a":1,"b":[]}', {"a": 1, "b": []}, "the same object came 3 times"),
        ('{"a":1,}', {"a": 1}, COMMAS),
        ('{"a":[1,[2, ] ,\n], "b":{"c":"x",},}', {"a": [1, [2]], "b": {"c": "x"}}, COMMAS),
        ('{"a":"b, }",}', {"a": "b, }"}, COMMAS),
        ('{"n":123456789012345678901234567890,}', {"n": 123456789012345678901234567890}, COMMAS),
        ('{"f":1e3,"t":true,"z":null,}', {"f": 1e3, "t": True, "z": None}, COMMAS),
        ('```json\n{"a":1}\n```', {"a": 1}, FENCE),
        ('\n```\n{"a":"```"}\n```\n', {"a": "```"}, FENCE),
        ('```JSON {"a":1}```', {"a": 1}, FENCE),
        ('```json\n{"a":1,}\n```', {"a": 1}, f"{FENCE}; {COMMAS}"),
        ("```json\n{}{}\n```", {}, f"{FENCE}; the same object came 2 times"),
    ],
)
def test_what_can_be_read_in_one_way_is_mended(text: str, value: dict[str, Any], note: str) -> None:
    found = repaired(text)
    assert found is not None
    assert (found.value, found.note) == (value, note)
    parsed = ToolActionParser().parse(ToolCall(name="act", arguments=text), {"act": ("t1", "act")})
    assert parsed == ParsedCall("t1", "act", "act", value, raw=text, note=note)
    as_bytes = ToolActionParser("google").parse(ToolCall(name="act", arguments=text.encode()), {"act": ("t1", "act")})
    assert (as_bytes.arguments, as_bytes.raw, as_bytes.note) == (value, text, note)


@pytest.mark.parametrize(
    "text",
    [
        '{"path": "/tm',
        '{"a":1,',
        '{"a":[1,]',
        '```json\n{"a":1',
        '```json\n{"a":[1,\n```',
        '{"a":1,}{"a":1',
        '{"a":1}{"b":2}',
        '{}{"a":1}',
        '{"a":1}{"a":1.0}',
        '{"a":1}{"a":true}',
        "{}[]",
        "{}" * 101,
        '"[1]"',
        '"{not json"',
        r'"\"{}\""',
        '"just text"',
        "[1,]",
        '{"a":1,,}',
        "{,}",
        '{"a":,}',
        '{"a":1},',
        '{"a":1 "b":2,}',
        '{"a" 1,}',
        '{"a":1,"a":2,}',
        '{"a":NaN,}',
        '{"a":1e999,}',
        '{"a":01,}',
        "{'a': 1,}",
        "{a: 1,}",
        '{"a": 1, // one\n}',
        '{"a":"x\ny",}',
        "{not json",
        "```\nwords\n```",
        "```",
        "``````",
        "",
    ],
)
def test_what_is_cut_off_or_could_be_read_otherwise_is_not(text: str) -> None:
    assert repaired(text) is None


def test_only_short_texts_have_their_commas_mended() -> None:
    longest = json.dumps({"a": "x" * 19_900})
    assert repaired(f"{longest[:-1]},}}") is not None
    assert repaired(json.dumps({"a": "x" * 20_000})[:-1] + ",}") is None


@pytest.mark.parametrize(
    "text",
    [
        '{"a":"' + '\\"' * 100_000 + ",}",
        "```" + " " * 200_000,
        "[" + ", " * 100_000 + "}",
        "{}" * 100_000,
        '{"a":' * 50_000 + ",}",
        '{"a":[' * 400 + "1," + "]}" * 400,
        json.dumps({"text": 'a "word", [a] list, and {so on}, ' * 6_000})[:-20],
    ],
)
def test_no_text_takes_long(text: str) -> None:
    started = time.thread_time()
    repaired(text)
    assert time.thread_time() - started < 0.5
