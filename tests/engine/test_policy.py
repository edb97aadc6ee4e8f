"""What rules say of a call: order, first match, conditions; whatever is unclear asks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from engine.policy import Policy, PolicyQuestion, decide_policy
from engine.predicate import Predicate, Untellable
from engine.rule import Rule, exactly
from events import Refused

__all__ = ()

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUESTION = PolicyQuestion(
    user_id="u",
    tool_id="t1",
    tool_name="files",
    action_name="delete_file",
    effect="destroy",
    conversation_id="k1",
    headless=False,
    fingerprint="f",
    arguments={"path": "/etc/passwd", "count": 3, "to": ["a@x.org", "b@y.org"]},
    now=NOW,
)


def verdict(*rules: Rule, question: PolicyQuestion = QUESTION) -> str | None:
    ruling = decide_policy(rules, question)
    return None if ruling is None else ruling.effect


def test_no_rule_says_nothing() -> None:
    assert verdict() is None
    assert verdict(Rule(verdict="deny", tool="web")) is None


@pytest.mark.parametrize(
    ("conditions", "matches"),
    [
        ({}, True),
        ({"tool": "files"}, True),
        ({"tool": "f*"}, True),
        ({"tool": "F*"}, False),
        ({"tool": "file"}, False),
        ({"tool": "[ef]iles"}, True),
        ({"tool_id": "t1"}, True),
        ({"tool_id": "t*"}, False),
        ({"action": "delete_*"}, True),
        ({"action": "delete"}, False),
        ({"effect": "destroy"}, True),
        ({"effect": "write"}, False),
        ({"headless": False}, True),
        ({"headless": True}, False),
        ({"fingerprint": "f"}, True),
        ({"fingerprint": "g"}, False),
        ({"conversation_id": "k1"}, True),
        ({"conversation_id": "k2"}, False),
        ({"conversation_id": None}, False),
        ({"tenant": "u*", "everyone": True}, True),
        ({"tenant": "v*", "everyone": True}, False),
        ({"predicate": "starts_with(path, '/etc')"}, True),
        ({"predicate": "count > `3`"}, False),
        ({"predicate": "to[?!ends_with(@, '@x.org')]"}, True),
        ({"expires_at": NOW + timedelta(seconds=1)}, True),
        ({"expires_at": NOW}, False),
        ({"tool": "files", "effect": "read"}, False),
    ],
)
def test_a_rule_speaks_of_the_calls_that_meet_all_its_conditions(conditions: dict[str, Any], matches: bool) -> None:
    assert verdict(Rule(verdict="deny", **conditions)) == ("deny" if matches else None)


def test_conditions_on_what_a_call_has_not() -> None:
    bare = replace(QUESTION, user_id=None, conversation_id=None)
    assert verdict(Rule(verdict="deny", tenant="*", everyone=True), question=bare) is None
    assert verdict(Rule(verdict="deny", conversation_id=None), question=bare) == "deny"


def test_the_first_match_decides_and_names_its_version() -> None:
    rules = [
        Rule(verdict="ask", id="later", version=7, ordinal=20),
        Rule(verdict="allow", id="first", version=3, ordinal=10, action="delete_*"),
        Rule(verdict="deny", id="none", version=1, ordinal=0, action="read_*"),
    ]
    ruling = decide_policy(rules, QUESTION)
    assert ruling is not None
    assert (ruling.effect, ruling.rule) == ("allow", "rule:first@3")


def test_rules_of_every_tenant_come_first() -> None:
    own = Rule(verdict="allow", ordinal=-5, id="a")
    assert verdict(own, Rule(verdict="deny", everyone=True, ordinal=99, id="b")) == "deny"


@pytest.mark.parametrize("written", ["allow", "ask", "deny"])
def test_a_rule_that_cannot_be_told_asks_and_nothing_answers_that(written: Any) -> None:
    unclear = Rule(verdict=written, predicate="count > path", ordinal=1, id="unclear")
    granted = Rule(verdict="allow", decision="m:c1", ordinal=0, id="granted")
    ruling = decide_policy([unclear, granted, Rule(verdict="allow", ordinal=2, id="next")], QUESTION)
    assert ruling is not None
    assert (ruling.effect, ruling.forced, ruling.rule) == ("ask", True, "rule:unclear@0")
    assert "passwd" not in ruling.reason


@pytest.mark.parametrize(("written", "then"), [("deny", "deny"), ("ask", "allow"), ("allow", "allow"), (None, "allow")])
def test_what_a_decision_granted_answers_an_asking_rule_and_opens_no_denial(written: Any, then: str) -> None:
    granted = Rule(verdict="allow", decision="m:c1", ordinal=-1, id="granted")
    rules = [granted] if written is None else [granted, Rule(verdict=written, ordinal=5)]
    assert verdict(*rules) == then


PATTERNS = ("*", "delete_*", "read_*", "*_file", "delete_file", "[a-d]*")
RULES = st.lists(
    st.builds(
        Rule,
        verdict=st.sampled_from(["allow", "ask", "deny"]),
        action=st.sampled_from([None, *PATTERNS]),
        effect=st.sampled_from([None, "read", "destroy"]),
        predicate=st.sampled_from([None, "count > `2`", "count > `3`", "path"]),
        everyone=st.booleans(),
        ordinal=st.integers(-3, 3),
        id=st.uuids().map(str),
    ),
    max_size=8,
)


def naively(rules: Sequence[Rule]) -> str | None:
    for rule in sorted(rules, key=lambda rule: (0 if rule.everyone else 1, rule.ordinal, rule.id)):
        if rule.action is not None and not fnmatchcase("delete_file", rule.action):
            continue
        if rule.effect not in (None, "destroy"):
            continue
        if rule.predicate == "count > `3`":
            continue
        return rule.verdict
    return None


@given(RULES, st.randoms(use_true_random=False))
def test_the_order_is_the_rules_own(rules: list[Rule], chance: random.Random) -> None:
    shuffled = chance.sample(rules, len(rules))
    assert verdict(*shuffled) == naively(rules)
    assert Policy(shuffled).decide(QUESTION) == Policy(rules).decide(QUESTION)


@given(RULES)
def test_a_denial_in_front_is_never_opened(rules: list[Rule]) -> None:
    front = Rule(verdict="deny", everyone=True, ordinal=-9, id="front")
    assert verdict(front, *rules) == "deny"


@pytest.mark.parametrize(
    "fields",
    [
        {"verdict": "maybe"},
        {"verdict": "deny", "effect": "harmless"},
        {"verdict": "deny", "headless": "yes"},
        {"verdict": "deny", "tool": 7},
        {"verdict": "deny", "tool": "a\x00"},
        {"verdict": "deny", "tenant": "u"},
        {"verdict": "deny", "ordinal": 2**40},
        {"verdict": "deny", "ordinal": "1"},
        {"verdict": "deny", "id": "a b"},
        {"verdict": "deny", "id": "../x"},
        {"verdict": "deny", "message": "x" * 1001},
        {"verdict": "deny", "expires_at": datetime(2026, 1, 1)},
        {"verdict": "deny", "decision": "m:c1"},
    ],
)
def test_rules_that_cannot_be_used_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        Rule(**({"version": 1} | fields))


def test_a_rule_comes_back_from_its_json_as_it_was_and_a_newer_ones_conditions_are_not_overlooked() -> None:
    for rule in (Rule(verdict="ask"), Rule(verdict="deny", conversation_id=None), Rule(verdict="deny", everyone=True)):
        assert msgspec.json.decode(msgspec.json.encode(rule), type=Rule) == rule
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"verdict":"allow","weekday":"monday"}', type=Rule)


@pytest.mark.parametrize("name", ["a*b", "what?", "[x]", "plain", "a[b", "]["])
def test_a_name_as_a_pattern_matches_itself_alone(name: str) -> None:
    assert fnmatchcase(name, exactly(name))
    assert not fnmatchcase(f"{name}x", exactly(name))
    assert not fnmatchcase(name.replace("*", "z").replace("?", "z").replace("[", "z") + "y", exactly(name))


@pytest.mark.parametrize(
    ("expression", "arguments", "holds"),
    [
        ("count > `2`", {"count": 3}, True),
        ("count > `2`", {"count": 10**30}, True),
        ("count == `3`", {"count": "3"}, False),
        ("mode == 'drop'", {}, False),
        ("mode", {"mode": 0}, True),
        ("mode", {"mode": ""}, False),
        ("path && starts_with(path, '/etc')", {}, False),
        ("a.b.c", {"a": {}}, False),
        ("name < 'm'", {"name": "abc"}, True),
        ("items[?price > `10`]", {"items": [{"price": 1}, {"price": 11}]}, True),
        ("items[?price > `10`]", {}, False),
        ("!confirmed", {"confirmed": False}, True),
        ("length(keys(@)) > `1`", {"a": 1, "b": 2}, True),
    ],
)
def test_predicates(expression: str, arguments: Any, holds: bool) -> None:
    assert Predicate(expression).holds(arguments) is holds


@pytest.mark.parametrize(
    ("expression", "arguments"),
    [
        ("count > `2`", {"count": "30"}),
        ("count > `2`", {"count": None}),
        ("count > `2`", {"count": True}),
        ("count > `2`", {}),
        ("starts_with(path, '/etc')", {}),
        ("starts_with(path, '/etc')", {"path": 7}),
        ("to[?!ends_with(@, '@x.org')]", {"to": "evil@y.org"}),
        ("to[0]", {"to": "evil"}),
        ("to[:1]", {"to": "evil"}),
        ("to[]", {"to": "evil"}),
        ("to[*].name", {"to": {"name": "evil"}}),
        ("to.*.name", {"to": ["evil"]}),
        ("a.b", {"a": "text"}),
        ("a", ["a"]),
    ],
)
def test_a_mistake_is_no_answer(expression: str, arguments: Any) -> None:
    with pytest.raises(Untellable) as told:
        Predicate(expression).holds(arguments)
    assert "evil" not in str(told.value)


@pytest.mark.parametrize(
    "expression", ["", " ", "a ==", "a[", "nowhere(a)", "starts_with(a)", "length(a, b)", "a" * 2001, "(" * 1500]
)
def test_what_is_no_expression_is_refused(expression: str) -> None:
    with pytest.raises(Refused, match="predicate"):
        Policy([Rule(verdict="deny", predicate=expression)])


def test_what_an_expression_goes_through_is_evaluated_once() -> None:
    nested: Any = "leaf"
    for _ in range(60):
        nested = [{"b": nested}]
    assert Predicate("@" + "[*].b" * 60).holds(nested)
