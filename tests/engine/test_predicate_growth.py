"""Predicates that would make of small arguments more than a machine holds are refused when the rule is added."""

from __future__ import annotations

import pytest

from engine.predicate import Predicate
from events import Refused

__all__ = ()

USUAL = [
    "contains(['GET', 'HEAD', 'POST'], method)",
    "contains(`" + str([*range(400)]).replace(" ", "") + "`, status)",
    "length(items[?price > `5` && contains(tags, 'x')]) > `3`",
    "map(&length(@), names) | sum(@) > `3`",
    "items[].[a, b, c][] | length(@) > `4`",
    "join(',', keys(@)) == 'a,b' || values(@)[] | contains(@, 'x')",
    "sort_by(items, &price)[-1].price > `3`",
    "[" + ", ".join(f"field{n}" for n in range(80)) + "] | contains(@, 'x')",
]

TWICE = "|".join(["[@, @]"] * 30)
ENDLESS = [
    f"{TWICE}|to_string(@) != 'x'",
    f"({TWICE}) == ({TWICE})",
    "|".join(["[@, @]"] * 22) + "[]" * 22 + " | length(@) > `1`",
    "[@, @]|(" * 50 + "to_string(@)|'x'" + ")" * 50,
    "{a: @, b: @}|" * 30 + "to_string(@)",
    f"'xxxxxxxxxxxxxxxx'|{TWICE}|to_string(@)",
    "|".join(["map(&[@, @], [@, @])"] * 15),
    "|".join(["join(to_string(@), [to_string(@), to_string(@), to_string(@)])"] * 20),
]


@pytest.mark.parametrize("text", USUAL)
def test_usual_predicates_are_taken(text: str) -> None:
    assert Predicate(text).text == text


@pytest.mark.parametrize("text", ENDLESS)
def test_what_grows_without_end_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="would copy the arguments more than 100 times"):
        Predicate(text)
