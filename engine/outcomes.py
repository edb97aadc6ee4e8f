"""The events that follow a proposal, made from it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from engine.deadlines import deadline_of
from engine.gate import Deny, Pause
from engine.guards import Guarded
from engine.preview import MARK
from engine.proposal import Refusal, Verdict, storable
from engine.results import Finished
from engine.settings import Limits
from events.keys import new_id
from events.types import Artifact, Denied, Executed, Failed, FailureKind, Paused, Proposed

__all__ = ("denied", "executed", "failed", "paused", "verdict_event")

_LONGEST: Final = 10_000


def _common(proposed: Proposed) -> dict[str, Any]:
    return {
        "id": new_id(),
        "key": proposed.key,
        "call_id": proposed.call_id,
        "message_id": proposed.message_id,
        "user_id": proposed.user_id,
        "tool_id": proposed.tool_id,
        "tool_name": proposed.tool_name,
        "action_name": proposed.action_name,
        "llm_name": proposed.llm_name,
        "labels": proposed.labels,
    }


def verdict_event(proposed: Proposed, verdict: Verdict, limits: Limits) -> Failed | Paused | Denied:
    """Return the event for what was decided before the tool could run; a pause begins now."""
    match verdict:
        case Refusal(kind=kind, message=message):
            return failed(proposed, kind, message)
        case Pause():
            return paused(proposed, verdict, deadline_of(verdict, limits))
        case Deny():
            return denied(proposed, verdict)


def failed(
    proposed: Proposed, kind: FailureKind, message: str, exception_type: str | None = None, late: bool = False
) -> Failed:
    """Return a Failed of this call; ``message`` is what the model is told, cut after 10,000 characters."""
    text = storable(message)
    return Failed(
        **_common(proposed),
        kind=kind,
        message=text if len(text) <= _LONGEST else f"{text[:_LONGEST]}{MARK}",
        exception_type=exception_type,
        late=late,
    )


def paused(proposed: Proposed, pause: Pause, expires_at: datetime | None = None) -> Paused:
    """Return a Paused of this call, with the arguments that will run if it is allowed."""
    return Paused(
        **_common(proposed),
        pause_type=pause.pause_type,
        reason=pause.reason,
        rule=pause.rule,
        expires_at=expires_at,
        arguments=proposed.arguments,
    )


def denied(proposed: Proposed, deny: Deny, by: str | None = None) -> Denied:
    """Return a Denied of this call."""
    return Denied(**_common(proposed), reason=deny.reason, rule=deny.rule, by=by, message=deny.message)


def executed(
    proposed: Proposed,
    guarded: Guarded,
    resolved: Mapping[str, Any],
    duration: float,
    artifact_id: str | None = None,
    artifacts: tuple[Artifact, ...] = (),
) -> Executed:
    """Return an Executed of this call; ``duration`` in seconds."""
    finished: Finished = guarded.finished
    return Executed(
        **_common(proposed),
        status=finished.status,
        result=finished.value,
        preview=finished.preview,
        artifact_id=artifact_id,
        artifacts=artifacts,
        resolved=dict(resolved),
        guard=guarded.note,
        duration=duration,
    )
