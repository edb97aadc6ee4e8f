"""Results: sanitising, status, preview, and that a long one holds nobody up."""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import anyio
import msgspec
import pytest

from engine.contract import ToolResult
from engine.jsonform import LISTED
from engine.results import Finished, finish, finish_result
from engine.settings import Limits

pytestmark = pytest.mark.anyio


@dataclass
class Verdict:
    status: str
    error: str | None = None


def text_of(finished: Finished) -> Any:
    """What a reader of the log gets."""
    return msgspec.json.decode(finished.encoded)


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("a\0b\0c", "abc"),
        ("x\x01\x08\x0b\x1f\x7f\n\t\ry", "x\n\t\ry"),
        ({"k\0": ["a\0", {"b\x1b": "\x7f"}]}, {"k": ["a", {"b": ""}]}),
        ("\x85\xa0", "\x85\xa0"),
        ("W\0i\0", "Wi"),
        ({"s": {"a\0"}}, {"s": ["a"]}),
    ],
)
def test_behaviour_125_control_characters_are_taken_out(raw: Any, clean: Any) -> None:
    finished = finish(raw)
    assert finished.value == clean
    assert text_of(finished) == clean


@pytest.mark.parametrize(
    "raw", ["clean\n\t\r", "\\u0000", "ünï", {"a": [1, "x\\b\\f"], "b": None}, [], 5, None, True, 1.5, 10**30]
)
def test_behaviour_125_a_clean_result_is_the_same_object(raw: Any) -> None:
    finished = finish(raw)
    assert finished.value is raw
    assert text_of(finished) == raw


def test_behaviour_125_a_clean_result_too_long_to_be_looked_through_at_once_is_the_same_object() -> None:
    raw = {"rows": [{"id": number, "title": "t" * 50} for number in range(10_000)]}
    assert finish(raw).value is raw


def test_a_long_result_that_is_no_json_content_has_its_json_form() -> None:
    raw = {"rows": [(number, "t" * 50) for number in range(10_000)]}
    finished = finish(raw)
    assert finished.value == {"rows": [[number, "t" * 50] for number in range(10_000)]}
    assert finished.value is finished.value


def test_case_journal_02_only_the_character_is_stripped_never_its_spelling() -> None:
    assert finish("W\u0000i\u0000").value == "Wi"
    assert finish({"W\u0000": 1}).value == {"W": 1}
    assert finish("\\u0000").value == "\\u0000"
    assert len(finish("\\u0000").text) == 6
    mixed = {"spelt": "\\u0000", "real": "\u0000\\u0000"}
    assert finish(mixed).value == {"spelt": "\\u0000", "real": "\\u0000"}


def test_case_parse_07_no_number_of_a_result_is_invalid_json() -> None:
    finished = finish({"loss": float("inf"), "gain": float("nan"), "n": 3})
    assert finished.value == {"loss": None, "gain": None, "n": 3}
    assert finished.text == '{"loss":null,"gain":null,"n":3}'
    assert finished.status == "completed"
    json.loads(finished.encoded, parse_constant=pytest.fail)


def test_case_parse_07_long_results_too() -> None:
    finished = finish({"rows": ["t" * 300_000], "loss": float("inf")})
    assert text_of(finished)["loss"] is None
    assert finished.value["loss"] is None


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        ({"status": "error"}, "error"),
        ({"error": "x"}, "error"),
        ({"status": "ok", "error": "x"}, "error"),
        ({"status": "ok", "error": None}, "completed"),
        ({"error": ""}, "completed"),
        ({"error": float("nan")}, "completed"),
        ({"error": {}}, "completed"),
        ({"err\0or": "x"}, "error"),
        ([{"error": "x"}], "completed"),
        ("Error: all is lost", "completed"),
        ('{"status": "error"}', "completed"),
        (None, "completed"),
        (ToolResult("Error: no such note", status="error"), "error"),
        (ToolResult({"a": 1}), "completed"),
        (ToolResult({"error": "x"}), "error"),
        (Verdict("error"), "error"),
        (Verdict("fine"), "completed"),
        (ValueError("boom"), "error"),
        ([ValueError("boom")], "completed"),
    ],
    ids=repr,
)
def test_behaviour_127_the_status_is_read_off_the_result(raw: Any, status: str) -> None:
    assert finish(raw).status == status


@pytest.mark.parametrize("error", ["x", {"code": 1}, float("nan"), None, ""])
def test_behaviour_127_of_long_results_too(error: Any) -> None:
    expected = finish({"error": error}).status
    assert finish({"rows": ["t" * 300_000], "error": error}).status == expected


def test_behaviour_121_previews() -> None:
    assert finish("x" * 2000).preview == "x" * 2000
    assert finish("x" * 2001).preview == "x" * 2000 + "..."
    assert finish({"a": 1}).preview == '{"a":1}'
    long = {"a": "é" * 3000}
    assert finish(long).preview == finish(long).text[:2000] + "..."
    assert len(finish(long).preview) == 2003


def test_behaviour_122_the_whole_result_stays() -> None:
    finished = finish("y" * 5000)
    assert (len(finished.value), finished.length) == (5000, 5000)
    assert len(finished.preview) == 2003
    assert finished.preview.endswith("...")
    assert finish(finished.preview).preview == finished.preview


def test_the_limit_is_a_setting() -> None:
    assert finish("abcdef", Limits(preview=3)).preview == "abc..."


def test_a_tool_results_data_is_the_result() -> None:
    finished = finish(ToolResult({"a": 1}, status="error"))
    assert finished.value == {"a": 1}
    assert finished.text == '{"a":1}'


def test_a_result_without_a_json_form_is_an_error_result_for_the_tool_did_run() -> None:
    ring: list[Any] = []
    ring.append(ring)
    finished = finish(ring)
    assert finished.status == "error"
    assert "holds itself" in finished.value["error"]


async def test_iterators_of_both_kinds_are_listed() -> None:
    async def pages() -> AsyncIterator[str]:
        yield "a\0"
        yield "b"

    assert (await finish_result(pages())).value == ["a", "b"]
    assert (await finish_result(ToolResult(pages(), status="error"))).status == "error"
    assert (await finish_result(letter for letter in "ab")).value == ["a", "b"]


async def test_an_endless_async_iterator_is_closed_at_the_bound() -> None:
    closed = []

    async def endless() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.append(True)

    finished = await finish_result(endless())
    assert finished.value[LISTED:] == [{"truncated": True, "listed": LISTED}]
    assert closed == [True]


@pytest.mark.parametrize("character", ["é", "\ud800", "x"])
async def test_case_truncate_03_a_huge_text_holds_up_neither_loop_nor_memory(character: str) -> None:
    # ASCII is looked through several times as fast: as many beats need more of it.
    size = 96_000_000 if character.isascii() else 24_000_000
    text = character * size
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await anyio.sleep(0.001)
            beats += 1

    tracemalloc.start()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(beat)
        finished = await finish_result(text)
        tasks.cancel_scope.cancel()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert beats > 2
    assert peak < 6 * sys.getsizeof(text)
    assert finished.length == size
    assert len(finished.preview) == 2003
