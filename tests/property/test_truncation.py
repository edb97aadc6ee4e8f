"""Properties of previews and of sanitised results, for any value."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.preview import MARK, boundary, cut_text
from engine.results import finish

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")

_pieces = st.sampled_from(
    [
        *"ab.\r\n",
        "\u0301",
        "\u200d",
        "\ufe0f",
        "\U0001f469",
        "\U0001f1e9",
        "\u1100",
        "\u1161",
        "\uac00",
        "\u0915",
        "\u094d",
    ]
)
texts = st.one_of(st.text(max_size=40), st.lists(_pieces, max_size=40).map("".join))
anything = st.characters() | st.characters(categories=["Cs", "Cc"])
contents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(anything, max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(anything, max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(texts, st.integers(1, 50))
def test_behaviour_121_122_cutting_again_changes_nothing(text: str, limit: int) -> None:
    cut = cut_text(text, limit)
    assert cut_text(cut, limit) == cut


@given(texts, st.integers(1, 50))
def test_behaviour_121_a_preview_is_a_beginning_within_the_limit(text: str, limit: int) -> None:
    cut = cut_text(text, limit)
    if cut != text:
        assert cut.endswith(MARK)
        assert text.startswith(cut[: -len(MARK)])
    assert len(cut) <= limit or (cut.endswith(MARK) and len(cut) <= limit + len(MARK))


@given(texts, texts, st.integers(1, 50))
def test_a_place_to_cut_depends_only_on_what_stands_around_it(text: str, more: str, limit: int) -> None:
    if len(text) > limit:
        assert boundary(text + more, limit) == boundary(text, limit)


@given(contents)
def test_behaviour_125_a_finished_result_is_valid_clean_json(value: Any) -> None:
    finished = finish(value)
    decoded = json.loads(finished.encoded, parse_constant=_refuse)
    assert decoded == finished.value
    assert not _CONTROL.search(_all_text(decoded))
    again = finish(finished.value)
    assert again.encoded == finished.encoded
    assert again.value is finished.value


def _refuse(constant: str) -> Any:
    raise AssertionError(f"{constant} is no JSON")


def _all_text(value: Any) -> str:
    if isinstance(value, dict):
        return "".join(key + _all_text(item) for key, item in value.items())
    if isinstance(value, list):
        return "".join(map(_all_text, value))
    return value if isinstance(value, str) else ""
