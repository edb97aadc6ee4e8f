"""An operator's rules: which calls are allowed, asked about, or denied. Pure: the first match decides (DESIGN 6, Gate).

Where rules are kept is ``engine/rules.py``; how what they say weighs against a tool's own wishes is ``engine/gate.py``.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from engine.gate import Ruling
from engine.predicate import Predicate, Untellable
from engine.rule import Rule
from events.types import Effect

__all__ = ("NO_POLICY", "Policy", "PolicyQuestion", "decide_policy")


class PolicyQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A call as rules see it.

    :ivar arguments: as the tool would get them: presets and pinned values included
    :ivar now: the moment at which rules must still hold
    """

    user_id: str | None
    tool_id: str
    tool_name: str
    action_name: str
    effect: Effect
    conversation_id: str | None
    headless: bool
    fingerprint: str
    arguments: Any
    now: datetime


class Policy:
    """Rules brought into their order and compiled; immutable.

    :raises Refused: if a rule's predicate is no expression
    """

    def __init__(self, rules: Sequence[Rule] = ()) -> None:
        ordered = sorted(rules, key=_place)
        self._written = tuple([_Compiled(rule) for rule in ordered if rule.decision is None])
        self._granted = tuple([_Compiled(rule) for rule in ordered if rule.decision is not None])
        self._allows = True

    def __repr__(self) -> str:
        return f"<Policy {len(self._written)} rules, {len(self._granted)} granted>"

    def __bool__(self) -> bool:
        return bool(self._written or self._granted)

    def without_allowances(self) -> Policy:
        """Return what is left where no rule may open anything: those that ask or deny, and what cannot be told."""
        left = Policy()
        left._written, left._granted, left._allows = self._written, self._granted, False
        return left

    def decide(self, question: PolicyQuestion) -> Ruling | None:
        """Return what the first rule that matches says; None: no rule speaks of this call.

        A rule whose predicate cannot be told asks, and no allowance answers that. What decisions granted never opens a
        denial: it answers an asking rule, or a call no rule speaks of.
        """
        ruling = _first(self._written, question, self._allows)
        if ruling is not None and (ruling.effect != "ask" or ruling.forced):
            return ruling
        return _first(self._granted, question, self._allows) or ruling


def decide_policy(rules: Sequence[Rule], question: PolicyQuestion) -> Ruling | None:
    """Return what rules say of one call (see :meth:`Policy.decide`); their order is their own, not the sequence's.

    :raises Refused: if a rule's predicate is no expression
    """
    return Policy(rules).decide(question)


class _Compiled:
    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._patterns = tuple(
            [
                (field, re.compile(fnmatch.translate(pattern)))
                for field, pattern in (
                    ("user_id", rule.tenant),
                    ("tool_name", rule.tool),
                    ("action_name", rule.action),
                )
                if pattern is not None
            ]
        )
        self._equals = tuple(
            [
                (field, value)
                for field, value in (
                    ("tool_id", rule.tool_id),
                    ("effect", rule.effect),
                    ("headless", rule.headless),
                    ("fingerprint", rule.fingerprint),
                )
                if value is not None
            ]
        )
        self._predicate = None if rule.predicate is None else Predicate(rule.predicate)

    def ruling(self, question: PolicyQuestion) -> Ruling | None:
        """Return what the rule says of a call, None if it does not speak of it."""
        rule = self.rule
        if not self._concerns(question):
            return None
        try:
            if self._predicate is not None and not self._predicate.holds(question.arguments):
                return None
        except Untellable as problem:
            return Ruling("ask", rule.name, f"whether rule {rule.id} matches cannot be told: {problem}", forced=True)
        return Ruling(rule.verdict, rule.name, rule.message or f"rule {rule.id}")

    def _concerns(self, question: PolicyQuestion) -> bool:
        rule = self.rule
        if rule.expires_at is not None and rule.expires_at <= question.now:
            return False
        if rule.conversation_id is not msgspec.UNSET and rule.conversation_id != question.conversation_id:
            return False
        for field, value in self._equals:
            if getattr(question, field) != value:
                return False
        for field, pattern in self._patterns:
            text: str | None = getattr(question, field)
            if text is None or pattern.match(text) is None:
                return False
        return True


def _first(compiled: Sequence[_Compiled], question: PolicyQuestion, allows: bool) -> Ruling | None:
    for entry in compiled:
        ruling = entry.ruling(question)
        if ruling is not None and (allows or ruling.effect != "allow"):
            return ruling
    return None


def _place(rule: Rule) -> tuple[bool, int, str]:
    return not rule.everyone, rule.ordinal or 0, rule.id


NO_POLICY: Final = Policy()
"""No rules at all."""
