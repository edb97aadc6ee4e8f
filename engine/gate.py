"""The gate: whether a call may run, must wait, or is refused. Pure: it decides on what it is told (DESIGN 6, Gate).

Asking the tool itself and reading the operator's rules is done around it (``engine/asking.py``).
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

import msgspec

from events.types import DenialReason, PauseType

__all__ = (
    "TO_CLIENT",
    "Allow",
    "Decision",
    "Deny",
    "GateQuestion",
    "LiveAnswer",
    "Pause",
    "Ruling",
    "check_again",
    "check_pause",
    "is_forced",
)

_DENYLIST: Final = "denylist"
_FAILED: Final = "live_gate_failed"


class LiveAnswer(msgspec.Struct, frozen=True):
    """What a tool's ``preview_decision`` said of one call.

    :ivar denylisted: approval is forced: no allowlist and no rule opens it
    :ivar failure: why the tool could not be asked, for people; then approval is required and forced
    """

    needs_approval: bool
    denylisted: bool = False
    failure: str | None = None


class Ruling(msgspec.Struct, frozen=True):
    """What the operator's rules say of one call: the first that matches.

    :ivar rule: names the rule in the event
    :ivar reason: for people, and for the model where the call is denied
    :ivar forced: no allowlist opens it
    """

    effect: Literal["allow", "ask", "deny"]
    rule: str
    reason: str
    forced: bool = False


class GateQuestion(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything the decision rests on.

    :ivar requires_approval: the stored flag, of the action's settings or its entry
    :ivar live_gate: the tool is asked at the moment of the call, and what it says adds to the flag or replaces it
    :ivar live: its answer; without one, a live-gated call counts as one whose tool could not be asked
    :ivar ruling: None: no rule speaks of this call
    """

    client_side: bool
    requires_approval: bool
    headless: bool
    allowlisted: bool
    live_gate: Literal["adds", "replaces"] | None = None
    live: LiveAnswer | None = None
    ruling: Ruling | None = None

    @property
    def unasked(self) -> bool:
        """Whether the tool is still to be asked."""
        return self.live_gate is not None and self.live is None


class Allow(msgspec.Struct, frozen=True):
    """The call may run."""


class Pause(msgspec.Struct, frozen=True):
    """The call waits."""

    pause_type: PauseType
    reason: str
    rule: str


TO_CLIENT: Final = Pause("requires_client_execution", "the client executes this tool", "client_tool")
"""How a call waits that its client executes."""


class Deny(msgspec.Struct, frozen=True):
    """The call will not run; ``message`` is for the model."""

    reason: DenialReason
    rule: str
    message: str


Decision: TypeAlias = Allow | Pause | Deny


class _Need(msgspec.Struct, frozen=True):
    """Why a person must approve; ``forced``: no allowlist opens it."""

    rule: str
    reason: str
    forced: bool = False


def check_pause(question: GateQuestion) -> Decision:
    """Decide on one call (BEHAVIOUR 45-69).

    Client tools wait for their client, gated ones for a person first. A run that nobody watches cannot wait: there both
    are denied, unless the row is in the run's allowlist and the approval is not forced.
    """
    ruling = question.ruling
    if ruling is not None and ruling.effect == "deny":
        return _forbidden(ruling)
    if question.client_side and question.headless:
        return _nobody_there("it is executed by a client, and this run has none", "client_tool")
    need = _need(question)
    if need is None or (question.headless and question.allowlisted and not need.forced):
        return TO_CLIENT if question.client_side else _RUN
    if not question.headless:
        return Pause("awaiting_approval", need.reason, need.rule)
    if need.rule == _DENYLIST:
        return _denylisted("and nobody watches this run who could approve it")
    return _nobody_there("it needs a person's approval, and nobody watches this run", need.rule)


def check_again(question: GateQuestion, paused_by: frozenset[str | None]) -> Decision:
    """Decide on a call that a person has approved: whether something forbids it now that they could not know of.

    :param paused_by: the rules of its pauses: what was known
    """
    ruling = question.ruling
    if ruling is not None and ruling.effect == "deny":
        return _forbidden(ruling)
    if question.live_gate is None or _DENYLIST in paused_by:
        return _RUN
    live = question.live or _UNASKED
    if live.denylisted:
        return _denylisted("and was not when it was approved")
    if live.failure is not None and _FAILED not in paused_by:
        return Pause("awaiting_approval", live.failure, _FAILED)
    return _RUN


def is_forced(rule: str | None) -> bool:
    """Tell whether what paused a call was the tool itself, in a way that nothing but a person's approval answers."""
    return rule in (_DENYLIST, _FAILED)


_RUN: Final = Allow()
_UNASKED: Final = LiveAnswer(True, failure="its tool was not asked")


def _need(question: GateQuestion) -> _Need | None:
    live = question.live
    if question.live_gate is not None:
        live = live or _UNASKED
        if live.failure is not None:
            return _Need(_FAILED, live.failure, forced=True)
        if live.denylisted:
            return _Need(_DENYLIST, "its tool's denylist has it: a person must approve it each time", forced=True)
    ruling = question.ruling
    if ruling is not None:
        return None if ruling.effect == "allow" else _Need(ruling.rule, ruling.reason, ruling.forced)
    if question.requires_approval and question.live_gate != "replaces":
        return _Need("require_approval", "a person must approve this call")
    if live is not None and live.needs_approval:
        return _Need("live_gate", "its tool asks for a person's approval")
    return None


def _forbidden(ruling: Ruling) -> Deny:
    return Deny("policy", ruling.rule, f"This call was not run: a rule forbids it ({ruling.reason}). Go on without it.")


def _denylisted(why: str) -> Deny:
    return Deny("denylist", _DENYLIST, f"This call was not run: its tool's denylist has it, {why}. Go on without it.")


def _nobody_there(why: str, rule: str) -> Deny:
    return Deny("headless", rule, f"This call was not run: {why}. Go on without it.")
