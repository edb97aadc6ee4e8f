"""An operator's rules: which calls are allowed, asked about, or denied. Pure: the first match decides (DESIGN 6, Gate).

Where rules are kept is ``engine/rules.py``; how what they say weighs against a tool's own wishes is ``engine/gate.py``.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

from engine.gate import Ruling
from engine.predicate import Predicate, Untellable
from events.errors import Refused
from events.keys import require_storable
from events.types import Effect

__all__ = ("NO_POLICY", "Policy", "PolicyQuestion", "PolicyVerdict", "Rule", "decide_policy", "exactly")

PolicyVerdict: TypeAlias = Literal["allow", "ask", "deny"]

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LONGEST_MESSAGE: Final = 1000
_PLACES: Final = 2**31
_TEXTS: Final = (
    "tool",
    "tool_id",
    "action",
    "tenant",
    "conversation_id",
    "fingerprint",
    "predicate",
    "message",
    "id",
    "decision",
    "created_by",
)


class Rule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One rule: the calls it speaks of, and what it says of them. A condition that is left out holds of every call.

    :ivar verdict: allow: what would be asked about runs; ask: a person must approve; deny: the call does not run
    :ivar tool: the tool's name, as a pattern (``*``, ``?``, ``[ab]``; upper and lower case differ)
    :ivar tool_id: the row's id, exactly
    :ivar action: the action's name, as a pattern
    :ivar effect: the action's effect
    :ivar tenant: the user id, as a pattern, for a rule of every tenant; calls without a user match none
    :ivar conversation_id: the conversation, exactly; None: calls that belong to none
    :ivar headless: whether somebody watches the run
    :ivar fingerprint: the action's definition, exactly
    :ivar predicate: a JMESPath expression over the arguments as the tool would get them
    :ivar message: why, for people, and for the model where the call is denied
    :ivar expires_at: until when it holds
    :ivar ordinal: its place, rules of every tenant first; left out when it is added: the last
    :ivar id: given when it is added, or made; ``version`` counts its changes from 1
    :ivar everyone: whether it holds for every tenant
    :ivar decision: the journal key of the call whose approval made it; such a rule only answers what would be asked
    :raises Refused: if a field cannot be used
    """

    verdict: PolicyVerdict
    tool: str | None = None
    tool_id: str | None = None
    action: str | None = None
    effect: Effect | None = None
    tenant: str | None = None
    conversation_id: str | msgspec.UnsetType | None = msgspec.UNSET
    headless: bool | None = None
    fingerprint: str | None = None
    predicate: str | None = None
    message: str = ""
    expires_at: datetime | None = None
    ordinal: int | None = None
    id: str = ""
    version: int = 0
    everyone: bool = False
    decision: str | None = None
    created_at: datetime | None = None
    created_by: str | None = None

    def __post_init__(self) -> None:
        _require_texts(self)
        _require_words(self)
        if self.expires_at is not None and self.expires_at.tzinfo is None:
            raise Refused("a rule's expires_at needs a time zone; e.g. datetime.now(UTC) + timedelta(hours=1)")
        if self.decision is not None and self.verdict != "allow":
            raise Refused("a rule made by a decision can only allow")
        if self.tenant is not None and not self.everyone and self.version:
            raise Refused("tenant belongs to rules of every tenant; this one is of one tenant as it is")

    @property
    def name(self) -> str:
        """How events name the rule: which one, in which version."""
        return f"rule:{self.id}@{self.version}"

    def __repr__(self) -> str:
        of = " of every tenant" if self.everyone else ""
        what = f"{self.tool or '*'}.{self.action or '*'}"
        return f"<Rule {self.id or 'new'}@{self.version}{of} {self.verdict} {what}>"


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

    def __repr__(self) -> str:
        return f"<Policy {len(self._written)} rules, {len(self._granted)} granted>"

    def __bool__(self) -> bool:
        return bool(self._written or self._granted)

    def decide(self, question: PolicyQuestion) -> Ruling | None:
        """Return what the first rule that matches says; None: no rule speaks of this call.

        A rule whose predicate cannot be told asks, and no allowance answers that. What decisions granted never opens a
        denial: it answers an asking rule, or a call no rule speaks of.
        """
        ruling = _first(self._written, question)
        if ruling is not None and (ruling.effect != "ask" or ruling.forced):
            return ruling
        return _first(self._granted, question) or ruling


NO_POLICY: Final = Policy()


def decide_policy(rules: Sequence[Rule], question: PolicyQuestion) -> Ruling | None:
    """Return what rules say of one call (see :meth:`Policy.decide`); their order is their own, not the sequence's.

    :raises Refused: if a rule's predicate is no expression
    """
    return Policy(rules).decide(question)


def exactly(name: str) -> str:
    """Return the pattern that matches this name alone."""
    return re.sub(r"([*?[])", r"[\1]", name)


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


def _first(compiled: Sequence[_Compiled], question: PolicyQuestion) -> Ruling | None:
    for entry in compiled:
        ruling = entry.ruling(question)
        if ruling is not None:
            return ruling
    return None


def _place(rule: Rule) -> tuple[bool, int, str]:
    return not rule.everyone, rule.ordinal or 0, rule.id


def _require_words(rule: Rule) -> None:
    for what, value, known in (
        ("verdict", rule.verdict, get_args(PolicyVerdict)),
        ("effect", rule.effect, (None, *get_args(Effect))),
        ("headless", rule.headless, (None, True, False)),
    ):
        if value not in known:
            raise Refused(f"a rule's {what} cannot be {value!r}; give one of {', '.join(map(str, known))}")
    if rule.id and _ID.fullmatch(rule.id) is None:
        raise Refused(f"{rule.id!r} cannot be a rule's id: use up to 100 letters, digits, dots, dashes, underscores")


def _require_texts(rule: Rule) -> None:
    for what in _TEXTS:
        value: object = getattr(rule, what)
        if value is None or value is msgspec.UNSET:
            continue
        if not isinstance(value, str):
            raise Refused(f"a rule's {what} must be text, not {type(value).__name__}")
        require_storable(value, f"the rule's {what}")
    if rule.ordinal is not None and not (isinstance(rule.ordinal, int) and abs(rule.ordinal) < _PLACES):
        raise Refused("a rule's ordinal must be a whole number")
    if len(rule.message) > _LONGEST_MESSAGE:
        raise Refused(f"a rule's message has at most {_LONGEST_MESSAGE} characters")
