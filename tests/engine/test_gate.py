"""The gate's decision, over everything it can be told: what must hold of each combination."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, Literal

import pytest

from engine.gate import Allow, Decision, Deny, GateQuestion, LiveAnswer, Pause, Ruling, check_again, check_pause

__all__ = ()

LIVE = (
    None,
    LiveAnswer(False),
    LiveAnswer(True),
    LiveAnswer(True, denylisted=True),
    LiveAnswer(True, failure="its tool failed to answer"),
)
RULINGS = (
    None,
    Ruling("allow", "rule-allow", "because"),
    Ruling("ask", "rule-ask", "because"),
    Ruling("ask", "rule-ask", "because", forced=True),
    Ruling("deny", "rule-deny", "because"),
)
GATES: tuple[Literal["adds", "replaces"] | None, ...] = (None, "adds", "replaces")


def questions() -> Iterator[GateQuestion]:
    flags = (False, True)
    for client, gated, headless, listed, gate, live, ruling in product(
        flags, flags, flags, flags, GATES, LIVE, RULINGS
    ):
        if not (client and gate) and (gate is not None or live is None):
            yield GateQuestion(
                client_side=client,
                requires_approval=gated,
                headless=headless,
                allowlisted=listed,
                live_gate=gate,
                live=live,
                ruling=ruling,
            )


ALL = list(questions())


def effect(question: GateQuestion) -> str | None:
    return None if question.ruling is None else question.ruling.effect


def forced(question: GateQuestion) -> bool:
    """Whether no allowlist may open it: denylisted, its tool could not be asked, or a rule says so."""
    live = question.live
    if question.ruling is not None and question.ruling.forced:
        return True
    return question.live_gate is not None and (live is None or live.denylisted or live.failure is not None)


def reason(decision: Decision) -> str | None:
    return decision.reason if isinstance(decision, Deny) else None


def test_there_is_something_to_decide() -> None:
    assert len(ALL) > 400
    assert {type(check_pause(question)) for question in ALL} == {Allow, Pause, Deny}


def test_nothing_waits_where_nobody_watches() -> None:
    for question in ALL:
        if question.headless:
            assert not isinstance(check_pause(question), Pause), question


def test_only_a_rule_denies_where_somebody_watches() -> None:
    for question in ALL:
        if not question.headless:
            assert isinstance(check_pause(question), Deny) == (effect(question) == "deny"), question


def test_a_rule_that_forbids_beats_everything() -> None:
    for question in ALL:
        if effect(question) == "deny":
            decision = check_pause(question)
            assert isinstance(decision, Deny)
            assert (decision.reason, decision.rule) == ("policy", "rule-deny")
            assert "because" in decision.message


def test_what_is_forced_never_runs_unseen() -> None:
    for question in ALL:
        if forced(question):
            assert not isinstance(check_pause(question), Allow), question
            if not question.headless and effect(question) != "deny":
                decision = check_pause(question)
                assert isinstance(decision, Pause)
                assert decision.pause_type == "awaiting_approval"


def test_a_denylist_says_so() -> None:
    for question in ALL:
        live = question.live
        if question.live_gate and live is not None and live.denylisted and effect(question) != "deny":
            decision = check_pause(question)
            assert isinstance(decision, Pause | Deny)
            assert decision.rule == "denylist"
            assert reason(decision) == ("denylist" if question.headless else None)


def test_clients_execute_only_where_there_is_one() -> None:
    for question in ALL:
        decision = check_pause(question)
        if question.client_side:
            assert not isinstance(decision, Allow)
            assert not question.headless or isinstance(decision, Deny)
        else:
            assert not (isinstance(decision, Pause) and decision.pause_type != "awaiting_approval")


def test_a_flag_counts_unless_something_replaces_it() -> None:
    for question in ALL:
        replaced = question.live_gate == "replaces" or effect(question) == "allow"
        opened = question.headless and question.allowlisted
        if question.requires_approval and not replaced and not opened:
            decision = check_pause(question)
            assert isinstance(decision, Deny) or (
                isinstance(decision, Pause) and decision.pause_type == "awaiting_approval"
            ), question


def test_a_tools_own_wish_counts_unless_a_rule_allows() -> None:
    for question in ALL:
        live = question.live
        wish = question.live_gate is not None and live is not None and live.needs_approval
        if wish and effect(question) != "allow" and not (question.headless and question.allowlisted):
            assert not isinstance(check_pause(question), Allow), question


def test_a_rule_that_asks_adds_even_to_what_replaces() -> None:
    for question in ALL:
        if effect(question) == "ask" and not question.headless:
            decision = check_pause(question)
            assert isinstance(decision, Pause)
            assert decision.pause_type == "awaiting_approval"
            assert forced(question) or decision.rule == "rule-ask"


def test_an_allowlist_changes_nothing_while_somebody_watches() -> None:
    for question in ALL:
        if not question.headless and question.allowlisted:
            other = {name: getattr(question, name) for name in GateQuestion.__struct_fields__} | {"allowlisted": False}
            assert check_pause(question) == check_pause(GateQuestion(**other))


def test_what_nothing_gates_runs() -> None:
    for question in ALL:
        asks = question.requires_approval and question.live_gate != "replaces"
        wish = question.live_gate is not None and question.live is not None and question.live.needs_approval
        if not (asks or wish or forced(question) or question.client_side or effect(question) in ("ask", "deny")):
            assert check_pause(question) == Allow(), question


@pytest.mark.parametrize(
    ("live", "rules", "expected"),
    [
        (LiveAnswer(False), {"live_gate"}, Allow),
        (LiveAnswer(True), {"live_gate"}, Allow),
        (LiveAnswer(True, denylisted=True), {"live_gate"}, Deny),
        (LiveAnswer(True, denylisted=True), {"require_approval", "live_gate_failed"}, Deny),
        (LiveAnswer(True, denylisted=True), {"denylist"}, Allow),
        (LiveAnswer(True, denylisted=True), {"denylist", "definition_changed"}, Allow),
        (LiveAnswer(True, failure="away"), {"live_gate"}, Pause),
        (LiveAnswer(True, failure="away"), {"live_gate_failed"}, Allow),
        (LiveAnswer(True, failure="away"), {"denylist"}, Allow),
        (None, {"live_gate"}, Pause),
    ],
)
@pytest.mark.parametrize("gate", ["adds", "replaces"])
def test_what_an_approval_covers(live: LiveAnswer | None, rules: set[str], expected: type[Any], gate: Any) -> None:
    """What its approvers were told; what they could not know of is denied, or looked at again."""
    for ruling in RULINGS:
        question = GateQuestion(
            client_side=False,
            requires_approval=True,
            headless=False,
            allowlisted=False,
            live_gate=gate,
            live=live,
            ruling=ruling,
        )
        decision = check_again(question, frozenset(rules))
        assert isinstance(decision, Deny if effect(question) == "deny" else expected)
