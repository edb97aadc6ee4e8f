"""Arguments as every database stores them."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from engine.journalled import MAX_DEPTH, TOO_DEEP, journal_form


def test_behaviour_113_nul_is_dropped_from_values_and_keys() -> None:
    given = {"a\x00": ["x\x00y", {"b": "\x00"}], "c": 1}
    assert journal_form(given) == {"a": ["xy", {"b": ""}], "c": 1}
    assert given == {"a\x00": ["x\x00y", {"b": "\x00"}], "c": 1}
    assert journal_form("a\x00") == "a"
    harmless = {"text": "\\u0000"}
    assert journal_form(harmless) is harmless


def test_behaviour_114_other_control_characters_stay() -> None:
    given = {"a": "a\x01b\x1f\x7f\n"}
    assert journal_form(given) is given


def test_behaviour_115_python_values_have_a_json_form() -> None:
    identity = uuid.UUID("12345678-1234-5678-1234-567812345678")
    moment = datetime(2024, 5, 1, 12, 30, tzinfo=UTC)
    given = {"u": identity, "t": moment, "d": Decimal("1.10"), "b": b"\x00\x01"}
    formed = journal_form(given)
    assert formed == {"u": str(identity), "t": "2024-05-01T12:30:00Z", "d": "1.10", "b": "AAE="}
    assert datetime.fromisoformat(formed["t"]) == moment


def test_case_parse_07_numbers_json_lacks_become_null() -> None:
    assert journal_form({"loss": float("inf"), "gain": float("nan"), "n": 3}) == {"loss": None, "gain": None, "n": 3}


def test_case_parse_09_halves_of_pairs_become_the_replacement_character() -> None:
    assert journal_form({"\ud800": "x\udc00y"}) == {"\ufffd": "x\ufffdy"}
    assert journal_form("\ud83d\udc0c") == "\U0001f40c"


@pytest.mark.parametrize(
    "content", [{}, {"a": [1, 2.5, "é", None, True, {"b": []}]}, [], "text", 2**90, None, {"a": "東京"}]
)
def test_content_that_needs_no_change_is_the_same_object(content: Any) -> None:
    assert journal_form(content) is content


def test_content_that_is_too_deep_or_holds_itself_is_replaced() -> None:
    deep: Any = 1
    for _ in range(MAX_DEPTH):
        deep = {"a": deep}
    assert journal_form(deep) is deep
    assert journal_form([deep]) == TOO_DEEP
    for _ in range(10_000):
        deep = [deep]
    assert journal_form({"a": deep}) == TOO_DEEP
    own: dict[str, Any] = {}
    own["a"] = [own, own]
    assert journal_form(own) == TOO_DEEP


def test_the_form_of_anything_can_be_encoded_and_is_its_own_form() -> None:
    odd: list[Any] = [object(), {1, 2}, (1, b"x"), {1: {None: 2}}, Exception("e"), msgspec.Raw(b"{"), type, len]
    for value in odd:
        form = journal_form({"v": value})
        assert journal_form(msgspec.json.decode(msgspec.json.encode(form))) == form
