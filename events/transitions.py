"""The lifecycle of a tool call: one table that is the law, and the pure fold of one attempt (DESIGN 5).

Nobody else compares statuses. The SQL guards are generated from :func:`requirement`, and tests compare the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, TypeAlias

import msgspec

from events.errors import TransitionRejected
from events.types import (
    Denied,
    LateOutcome,
    Paused,
    PauseType,
    Proposed,
    Resumed,
    ToolEvent,
)

__all__ = (
    "STATUSES",
    "Attempt",
    "Gate",
    "Phase",
    "Requirement",
    "Status",
    "advance",
    "describe",
    "kind_of",
    "requirement",
    "some_state_before",
)

Status: TypeAlias = Literal["proposed", "executed", "confirmed", "denied", "failed"]
Gate: TypeAlias = Literal["open", "paused", "approved", "claimed"]
Phase: TypeAlias = Literal[
    "open",
    "paused:awaiting_approval",
    "paused:requires_client_execution",
    "paused:requires_input",
    "approved",
    "claimed",
]

STATUSES: tuple[Status, ...] = ("proposed", "executed", "confirmed", "denied", "failed")

_FOR_APPROVAL: Phase = "paused:awaiting_approval"
_FOR_CLIENT: Phase = "paused:requires_client_execution"
_FOR_INPUT: Phase = "paused:requires_input"
_PAUSED: frozenset[Phase] = frozenset({_FOR_APPROVAL, _FOR_CLIENT, _FOR_INPUT})

_PAUSABLE: dict[PauseType, frozenset[Phase]] = {
    "awaiting_approval": frozenset({"open", "approved"}),
    "requires_client_execution": frozenset({"open", "claimed"}),
    "requires_input": frozenset({"open", "claimed"}),
}
_DENIABLE: dict[str, frozenset[Phase]] = {
    "headless": frozenset({"open"}),
    "duplicate": frozenset({"open"}),
    "policy": frozenset({"open", "approved"}),
    "denylist": frozenset({"open", "approved"}),
    "rejected": _PAUSED,
    "expired": frozenset({_FOR_APPROVAL, "approved"}),
    "superseded": frozenset({_FOR_APPROVAL, "approved"}),
}


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one call as the fold of its stream sees it. ``gate`` stays as it was when the call ends."""

    status: Status
    gate: Gate
    pause_type: PauseType | None
    late: bool
    idempotent: bool
    version: int

    @property
    def phase(self) -> Phase | None:
        """Where an open call stands; None once it has ended."""
        if self.status != "proposed":
            return None
        return _phase_of(self.gate, self.pause_type)

    def __repr__(self) -> str:
        waiting = f" {self.pause_type}" if self.pause_type else ""
        return f"<Attempt {self.status}/{self.gate}{waiting} v{self.version}{' late' if self.late else ''}>"


class Requirement(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """What must hold of the attempt for an event to be appended, and what the attempt becomes.

    ``status`` None: the row must not exist yet (Proposed). ``phases`` None: any phase of that status.
    ``gate`` None in what is given: the gate stays as it was.
    """

    status: tuple[Status, ...] | None
    phases: frozenset[Phase] | None = None
    not_late: bool = False
    idempotent: bool = False
    gives: Status | None
    gate: Gate | None = None
    pause_type: PauseType | None = None
    repeatable: bool = False


def _phase_of(gate: Gate, pause_type: PauseType | None) -> Phase:
    if gate != "paused":
        return gate
    match pause_type:
        case "requires_client_execution":
            return _FOR_CLIENT
        case "requires_input":
            return _FOR_INPUT
        case _:
            return _FOR_APPROVAL


def kind_of(event: ToolEvent) -> str:
    """Return the event's tag, e.g. ``late_outcome``."""
    return _kind_of_class(type(event))


@lru_cache(maxsize=64)
def _kind_of_class(kind: type[msgspec.Struct]) -> str:
    return str(kind.__struct_config__.tag)


def _ending(gives: Status, phases: frozenset[Phase]) -> Requirement:
    return Requirement(status=("proposed",), phases=phases, gives=gives)


def _staying(
    gate: Gate, phases: frozenset[Phase], *, pause_type: PauseType | None = None, idempotent: bool = False
) -> Requirement:
    return Requirement(
        status=("proposed",),
        phases=phases,
        not_late=True,
        idempotent=idempotent,
        gives="proposed",
        gate=gate,
        pause_type=pause_type,
        repeatable=True,
    )


_PLAIN: Mapping[str, Requirement] = MappingProxyType(
    {
        "proposed": Requirement(status=None, gives="proposed", gate="open"),
        "approved": _staying("approved", frozenset({_FOR_APPROVAL})),
        "executed": _ending("executed", frozenset({"open", "claimed", _FOR_CLIENT})),
        "failed": _ending("failed", frozenset({"open", "claimed", _FOR_CLIENT, _FOR_INPUT})),
        "confirmed": Requirement(status=("executed",), gives="confirmed"),
        "late_outcome": Requirement(status=STATUSES, gives=None, repeatable=True),
    }
)
"""The kinds of which every event asks for the same, by tag."""


@lru_cache(maxsize=64)
def _plain(kind: type[msgspec.Struct]) -> Requirement | None:
    return _PLAIN.get(_kind_of_class(kind))


_PAUSES: Mapping[PauseType, Requirement] = MappingProxyType(
    {pause_type: _staying("paused", phases, pause_type=pause_type) for pause_type, phases in _PAUSABLE.items()}
)
_DENIALS: Mapping[str, Requirement] = MappingProxyType(
    {reason: _ending("denied", phases) for reason, phases in _DENIABLE.items()}
)
_RESUMED = _staying("claimed", frozenset({"approved"}))
_ANSWERED = _staying("claimed", frozenset({_FOR_INPUT}))
_TAKEN_OVER = _staying("claimed", frozenset({"claimed"}), idempotent=True)


def requirement(event: ToolEvent) -> Requirement:
    """Return the law's row for this event."""
    plain = _plain(type(event))
    if plain is not None:
        return plain
    match event:
        case Paused():
            return _PAUSES[event.pause_type]
        case Denied():
            return _DENIALS[event.reason]
        case _:
            assert isinstance(event, Resumed)
            # An answer only makes sense for a call that waits for input.
            answers = not isinstance(event.answer, msgspec.UnsetType)
            return _TAKEN_OVER if event.takeover else _ANSWERED if answers else _RESUMED


def advance(attempt: Attempt | None, event: ToolEvent) -> Attempt:
    """Fold one event into an attempt's state; None stands for a call that does not exist yet.

    :raises TransitionRejected: if the lifecycle does not allow the event in this state
    """
    rule = requirement(event)
    if attempt is None or rule.status is None:
        if attempt is not None or rule.status is not None or not isinstance(event, Proposed):
            raise TransitionRejected(event.key, kind_of(event), "not there yet" if attempt is None else "there already")
        return Attempt(
            status="proposed", gate="open", pause_type=None, late=event.late, idempotent=event.idempotent, version=1
        )
    if not _allowed(attempt, rule):
        raise TransitionRejected(event.key, kind_of(event), describe(attempt))
    return Attempt(
        status=rule.gives or attempt.status,
        gate=rule.gate or attempt.gate,
        pause_type=attempt.pause_type if rule.gate is None else rule.pause_type,
        late=attempt.late or event.late or isinstance(event, LateOutcome),
        idempotent=attempt.idempotent,
        version=attempt.version + 1,
    )


def _allowed(attempt: Attempt, rule: Requirement) -> bool:
    if rule.status is None or attempt.status not in rule.status:
        return False
    if rule.phases is not None and attempt.phase not in rule.phases:
        return False
    if rule.not_late and attempt.late:
        return False
    return attempt.idempotent or not rule.idempotent


def some_state_before(event: ToolEvent) -> Attempt:
    """Return a state in which the event is allowed: enough to check what may follow it in the same append."""
    rule = requirement(event)
    gate, _, pause_type = (min(rule.phases) if rule.phases else "open").partition(":")
    return msgspec.convert(
        {
            "status": (rule.status or ("proposed",))[0],
            "gate": gate,
            "pause_type": pause_type or None,
            "late": False,
            "idempotent": True,
            "version": 1,
        },
        Attempt,
    )


def describe(attempt: Attempt) -> str:
    """Return the state as people and errors name it: ``status/gate``, with what a paused call waits for."""
    waiting = f" ({attempt.pause_type})" if attempt.gate == "paused" and attempt.pause_type else ""
    return f"{attempt.status}/{attempt.gate}{waiting}"
