"""Previews end between graphemes."""

from __future__ import annotations

import pytest

from engine.preview import boundary, cut_text

GRAPHEMES = [
    "e\u0301",
    "e\u0301\u0302\u0303",
    "\r\n",
    "\N{FAMILY}\ufe0f",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "\U0001f44d\U0001f3fd",
    "\U0001f1e9\U0001f1ea",
    "1\ufe0f\u20e3",
    "\u1100\u1161\u11a8",
    "\uac00\u11a8",
    "\u0915\u094d\u0937",
    "\u0915\u094d\u0301\u0937",
    "\u0e01\u0e33",
    "\u0600\u0661",
    "\U0001f3f4\U000e0067\U000e0062\U000e007f",
    "\u0b95\u0bcb",
]


@pytest.mark.parametrize("grapheme", GRAPHEMES, ids=ascii)
def test_no_grapheme_is_cut(grapheme: str) -> None:
    text = "ab" + grapheme + "cd"
    for limit in range(2, 2 + len(grapheme)):
        assert cut_text(text, limit) == "ab..."
    assert boundary(text, 2 + len(grapheme)) == 2 + len(grapheme)


def test_flags_are_counted_in_pairs() -> None:
    flags = "\U0001f1e9\U0001f1ea" * 5
    assert [boundary(flags, limit) for limit in range(1, 8)] == [0, 2, 2, 4, 4, 6, 6]
    assert boundary("x" + flags, 4) == 3


def test_nothing_is_shown_of_one_grapheme_that_is_too_long() -> None:
    assert cut_text("e" + "\u0301" * 3000, 2000) == "..."


@pytest.mark.parametrize("text", ["\U0001fae8" * 10, "漢" * 10, "a\nb\nc\nd", "\x00\x01\x02\x03\x04"])
def test_what_is_not_joined_is_cut_at_the_limit(text: str) -> None:
    assert boundary(text, 4) == 4


def test_a_control_character_joins_nothing() -> None:
    assert boundary("\n\u0301x", 1) == 1
