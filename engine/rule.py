"""One rule of an operator: which calls it speaks of, and what it says of them."""

from __future__ import annotations

import re
from datetime import datetime
from enum import Enum
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from events.errors import Refused
from events.keys import require_storable
from events.types import Effect

__all__ = ("EVERYONE", "Everyone", "PolicyVerdict", "Rule", "RuleVersion", "exactly")


class Everyone(Enum):
    """Stands where a user id would, for rules of every tenant; its value is what no tenant is encoded as."""

    EVERYONE = "*"


EVERYONE: Final = Everyone.EVERYONE
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


class RuleVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a rule, and since when it holds no more.

    :ivar retired_by: who replaced or revoked it; None where it expired, or nobody was named
    """

    rule: Rule
    retired_at: datetime | None
    retired_by: str | None


def exactly(name: str) -> str:
    """Return the pattern that matches this name alone."""
    return re.sub(r"([*?[])", r"[\1]", name)


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
    ordinal: object = rule.ordinal
    if ordinal is not None and not (isinstance(ordinal, int) and abs(ordinal) < _PLACES):
        raise Refused("a rule's ordinal must be a whole number")
    if len(rule.message) > _LONGEST_MESSAGE:
        raise Refused(f"a rule's message has at most {_LONGEST_MESSAGE} characters")
