"""The gate: whether a call may run, must wait, or is refused. Pure: it decides on what it is told (DESIGN 6, Gate)."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from events.types import DenialReason, PauseType

__all__ = ("Allow", "Decision", "Deny", "GateQuestion", "Pause", "check_pause")


class GateQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the decision rests on.

    ``asks_live``: the tool has a ``preview_decision``, whose answer this release does not take yet, so it counts as
    "needs approval, and no allowlist opens it".
    """

    client_side: bool
    requires_approval: bool
    asks_live: bool
    headless: bool
    allowlisted: bool


class Allow(msgspec.Struct, frozen=True):
    """The call may run."""


class Pause(msgspec.Struct, frozen=True):
    """The call waits."""

    pause_type: PauseType
    reason: str
    rule: str


class Deny(msgspec.Struct, frozen=True):
    """The call will not run; ``message`` is for the model."""

    reason: DenialReason
    rule: str
    message: str


Decision: TypeAlias = Allow | Pause | Deny


def check_pause(question: GateQuestion) -> Decision:
    """Decide on one call (BEHAVIOUR 45-69): client tools wait for their client, gated ones for a person; a run that
    nobody watches cannot wait, so there both are denied, unless the row is in the run's allowlist.
    """
    if question.client_side:
        if question.headless:
            return _nobody_there("it is executed by a client, and this run has none", "client_tool")
        return Pause("requires_client_execution", "the client executes this tool", "client_tool")
    if not (question.requires_approval or question.asks_live):
        return Allow()
    rule = "live_gate" if question.asks_live else "require_approval"
    if question.headless:
        if question.allowlisted and not question.asks_live:
            return Allow()
        return _nobody_there("it needs a person's approval, and nobody watches this run", rule)
    return Pause("awaiting_approval", "a person must approve this call", rule)


def _nobody_there(why: str, rule: str) -> Deny:
    return Deny("headless", rule, f"This call was not run: {why}. Go on without it.")
