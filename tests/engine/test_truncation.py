"""Results cut for the model (DESIGN 4, TRUNCATE-02)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.truncation import SMALLEST, cut_for_model
from events import Refused


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def test_a_result_within_the_limit_is_whole() -> None:
    assert cut_for_model("abc", "abc", "k", SMALLEST) == "abc"
    assert cut_for_model("x" * 5000, "x" * 5000, "k", None) == "x" * 5000


def test_case_truncate_02_a_cut_result_is_json_that_says_so_and_shows_both_ends() -> None:
    rows = [{"id": number, "note": 'a "quoted" line\n' * 3} for number in range(5000)]
    text = text_of(rows)
    shown = cut_for_model(rows, text, "m1:c1", 20_000)
    notice = json.loads(shown)
    assert len(shown) <= 20_000
    assert len(shown) > 18_000
    assert notice["truncated"] is True
    assert notice["total"] == len(text)
    assert notice["read"] == "m1:c1"
    assert text.startswith(notice["head"])
    assert text.endswith(notice["tail"])
    assert cut_for_model(rows, text, "m1:c1", 20_000) == shown


def test_case_truncate_02_the_limit_holds_for_the_sum_of_blocks() -> None:
    blocks = [{"type": "text", "text": letter * 15_000} for letter in "abc"]
    assert len(cut_for_model(blocks, text_of(blocks), "k", 20_000)) <= 20_000


def test_case_truncate_02_a_notice_is_cut_in_its_ends_and_never_nests() -> None:
    text = "0123456789" * 10_000
    once = json.loads(cut_for_model(text, text, "first", 5000))
    again = json.loads(cut_for_model(once, text_of(once), "second", 1000))
    assert again["total"] == 100_000
    assert again["read"] == "first"
    assert text.startswith(again["head"])
    assert text.endswith(again["tail"])
    assert len(text_of(again)) <= 1000


def test_a_limit_without_room_is_refused() -> None:
    with pytest.raises(Refused, match="at least 200"):
        cut_for_model("x" * 500, "x" * 500, "k", SMALLEST - 1)


def test_ends_are_cut_between_graphemes() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    notice = json.loads(cut_for_model(family * 500, family * 500, "k", 300))
    assert notice["head"] == family * (len(notice["head"]) // len(family))
    assert notice["tail"] == family * (len(notice["tail"]) // len(family))


@given(st.text(min_size=1, max_size=400), st.integers(SMALLEST, 2000), st.integers(1, 20))
def test_every_cut_is_within_its_limit_and_true(piece: str, limit: int, times: int) -> None:
    text = piece * times
    shown = cut_for_model(text, text, "m:c", limit)
    assert len(shown) <= max(limit, len(text) if len(text) <= limit else 0)
    if shown != text:
        notice = json.loads(shown)
        assert text.startswith(notice["head"])
        assert text.endswith(notice["tail"])
        assert notice["total"] == len(text)
