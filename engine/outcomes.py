"""The events that follow a proposal, made from it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from engine.deadlines import deadline_of
from engine.gate import Deny, Pause
from engine.guards import Guarded
from engine.preview import MARK
from engine.proposal import Refusal, Verdict, storable
from engine.results import Finished
from engine.settings import Limits
from events.keys import call_digest, new_id
from events.types import Approved, Artifact, Denied, Executed, Failed, FailureKind, Paused, Proposed, Resumed

__all__ = (
    "Edited",
    "approved",
    "denied",
    "digest_as_run",
    "executed",
    "failed",
    "orphaned",
    "paused",
    "resumed",
    "verdict_event",
)

_LONGEST: Final = 10_000

_ORPHANED: Final = "The worker that ran this call is gone; whether the call had its effect is not known."

Edited: TypeAlias = dict[str, Any] | msgspec.UnsetType
"""Arguments as an approver wants them; unset: as they are."""


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
    proposed: Proposed,
    kind: FailureKind,
    message: str,
    exception_type: str | None = None,
    late: bool = False,
    rule: str | None = None,
) -> Failed:
    """Return a Failed of this call; ``message`` is what the model is told, cut after 10,000 characters."""
    text = storable(message)
    return Failed(
        **_common(proposed),
        kind=kind,
        message=text if len(text) <= _LONGEST else f"{text[:_LONGEST]}{MARK}",
        exception_type=exception_type,
        late=late,
        rule=rule,
    )


def orphaned(proposed: Proposed, late: bool = False) -> Failed:
    """Return a Failed of this call, whose worker is gone."""
    return failed(proposed, "orphaned", _ORPHANED, late=late)


def paused(proposed: Proposed, pause: Pause, expires_at: datetime | None = None, request: Any = None) -> Paused:
    """Return a Paused of this call, with the arguments that will run if it is allowed."""
    return Paused(
        **_common(proposed),
        pause_type=pause.pause_type,
        reason=pause.reason,
        rule=pause.rule,
        expires_at=expires_at,
        arguments=proposed.arguments,
        request=request,
    )


def denied(proposed: Proposed, deny: Deny, by: str | None = None) -> Denied:
    """Return a Denied of this call."""
    return Denied(**_common(proposed), reason=deny.reason, rule=deny.rule, by=by, message=deny.message)


def approved(proposed: Proposed, by: str, comment: str | None, fingerprint: str, edited: Edited) -> Approved:
    """Return an Approved of this call, with the digest of what is approved.

    :param proposed: with the arguments that run unless they are edited
    :param fingerprint: of the definition that the approver was shown
    """
    unedited = isinstance(edited, msgspec.UnsetType)
    return Approved(
        **_common(proposed),
        by=by,
        comment=comment,
        digest=digest_as_run(proposed if unedited else replace(proposed, arguments=edited, raw=None)),
        fingerprint=fingerprint,
        arguments=edited,
    )


def resumed(proposed: Proposed, worker: str, takeover: bool = False, answer: Any = msgspec.UNSET) -> Resumed:
    """Return a Resumed of this call: the claim of one worker."""
    return Resumed(**_common(proposed), worker=worker, takeover=takeover, answer=answer)


def digest_as_run(proposed: Proposed) -> str:
    """Return the digest of a call's arguments as they stand."""
    unread = proposed.raw is not None and proposed.note is None
    arguments = [proposed.arguments, proposed.raw] if unread else proposed.arguments
    return call_digest(proposed.tool_id, proposed.action_name, arguments)


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
    # Written out: of all outcomes this is by far the most frequent.
    return Executed(
        id=new_id(),
        key=proposed.key,
        call_id=proposed.call_id,
        message_id=proposed.message_id,
        user_id=proposed.user_id,
        tool_id=proposed.tool_id,
        tool_name=proposed.tool_name,
        action_name=proposed.action_name,
        llm_name=proposed.llm_name,
        labels=proposed.labels,
        status=finished.status,
        result=finished.value,
        preview=finished.preview,
        artifact_id=artifact_id,
        artifacts=artifacts,
        resolved=dict(resolved),
        guard=guarded.note,
        duration=duration,
    )
