"""Names of any actions: legal, unique, led back from, and the same every time."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from engine.actions import Action
from engine.naming import advertise
from engine.schemas import prepare
from tests.engine.actions_of import actions_of

LEGAL = {
    "openai": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "anthropic": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "google": re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}"),
}
NAMES = st.one_of(
    st.text(min_size=1, max_size=80),
    st.sampled_from(
        ["search", "search_1", "search 1", "search!", "t_search", "t_search_1", "x" * 64, "x" * 70, "1", "_", "é"]
    ),
    st.text(alphabet="ab_.1", min_size=1, max_size=4),
    st.integers(0, 99).map(lambda number: "p" * 62 + str(number) + "q"),
)
ROWS = st.lists(st.tuples(NAMES, st.lists(NAMES, min_size=1, max_size=5, unique=True), st.booleans()), max_size=8)


def built(rows: list[tuple[str, list[str], bool]]) -> list[Action]:
    return [
        action
        for place, (tool, actions, synthesised) in enumerate(rows)
        for action in actions_of(*actions, row=f"r{place}", name=tool, synthesised=synthesised)
    ]


@given(ROWS, st.sampled_from(sorted(LEGAL)))
def test_names_are_legal_unique_and_lead_back(rows: list[tuple[str, list[str], bool]], family: str) -> None:
    actions = built(rows)
    names = advertise(actions, family)
    assert len(names) == len(actions)
    assert len(set(names)) == len(names)
    assert all(LEGAL[family].fullmatch(name) for name in names)
    counts = Counter(action.name for action in actions)
    for action, name in zip(actions, names, strict=True):
        if counts[action.name] > 1:
            assert name not in counts or counts[name] == 1
        elif LEGAL[family].fullmatch(action.name):
            assert name == action.name
    assert advertise(built(rows), family) == names


@given(ROWS, st.randoms())
def test_the_order_within_a_row_changes_no_name(rows: list[tuple[str, list[str], bool]], random: object) -> None:
    turned = [(tool, sorted(actions, reverse=True), synthesised) for tool, actions, synthesised in rows]
    assert prepare(built(rows), "openai").names == prepare(built(turned), "openai").names


@given(ROWS)
def test_every_route_leads_to_an_offered_action(rows: list[tuple[str, list[str], bool]]) -> None:
    actions = built(rows)
    prepared = prepare(actions, "openai")
    assert len(prepared.functions) == len(prepared.names)
    known = {(action.tool_id, action.name) for action in actions}
    assert set(prepared.names.values()) <= known
    assert len(set(prepared.names.values())) == len(prepared.names)
    assert {action for _, action in prepared.names.values()} == {action.name for action in actions}
