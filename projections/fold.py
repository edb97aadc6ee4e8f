"""The pure fold of one state row from its events: what ``tool_call_attempts`` must hold, told a second time.

Independent on purpose of ``attempts.py``, which says the same in changes to columns: tests and ``verify`` compare them.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import force_setattr, replace

from events.codec import Codec, encode_json
from events.errors import TransitionRejected
from events.transitions import Attempt, advance, kind_of
from events.types import (
    Approved,
    Confirmed,
    Denied,
    Executed,
    Failed,
    LateOutcome,
    Paused,
    Proposed,
    Recorded,
    Resumed,
    ToolEvent,
)
from projections.row import AttemptRow

__all__ = ("TextCodec", "fold_row", "text_of")


def fold_row(row: AttemptRow | None, recorded: Recorded[ToolEvent]) -> AttemptRow:
    """Return the row as it must be after one more event; None stands for a call that does not exist yet. Pure.

    :raises TransitionRejected: if the lifecycle does not allow the event in this state
    """
    event = recorded.event
    if row is None:
        if not isinstance(event, Proposed):
            raise TransitionRejected(recorded.key, kind_of(event), "not there yet")
        return _begun(recorded, event)
    return _said(_moved(row, advance(row.attempt, event), recorded), event)


def _begun(recorded: Recorded[ToolEvent], event: Proposed) -> AttemptRow:
    # By place: by name, so many fields take ten times as long, and every call of a log comes through here.
    return AttemptRow(
        recorded.position,
        recorded.user_id,
        recorded.key,
        event.call_id,
        event.message_id,
        event.run_id,
        event.tool_id,
        event.tool_name,
        event.action_name,
        event.arguments,
        event.digest,
        "proposed",  # status
        "open",  # gate
        None,  # pause_type
        None,  # rule
        None,  # expires_at
        None,  # result_status
        None,  # result
        None,  # error
        None,  # artifact_id
        event.worker,
        event.headless,
        event.conversation_id,
        event.agent_id,
        event.llm_name,
        event.effect,
        event.idempotent,
        event.fingerprint,
        event.late,
        event.traceparent,
        recorded.recorded_at,  # proposed_at
        recorded.recorded_at,  # updated_at
        1,  # version
        recorded.position,
    )


def _moved(row: AttemptRow, after: Attempt, recorded: Recorded[ToolEvent]) -> AttemptRow:
    return replace(
        row,
        status=after.status,
        gate=after.gate,
        pause_type=after.pause_type,
        late=after.late,
        updated_at=recorded.recorded_at,
        version=after.version,
        position=recorded.position,
    )


def _said(row: AttemptRow, event: ToolEvent) -> AttemptRow:
    """Return the row with what the event says besides its transition."""
    match event:
        case Executed():
            return replace(
                row,
                result_status=event.status,
                result=event.result,
                artifact_id=event.artifact_id,
                rule=_rule(row, event),
            )
        case Failed():
            return replace(row, error=event.message, rule=_rule(row, event))
        case Denied():
            said = f"{event.reason}: {event.message}"
            return replace(row, error=said, rule=_rule(row, event))
        case Paused():
            return replace(
                row,
                fingerprint=event.new_fingerprint or row.fingerprint,
                rule=_rule(row, event),
                expires_at=event.expires_at,
            )
        case Approved(arguments=msgspec.UnsetType()):
            return replace(row, expires_at=None)
        case Approved():
            return replace(row, expires_at=None, arguments=event.arguments)
        case Resumed():
            return replace(row, expires_at=None, worker=event.worker)
        case _:
            return row


def _rule(row: AttemptRow, event: Paused | Denied | Executed | Failed) -> str | None:
    return row.rule if event.rule is None else event.rule


class _ProposedText(Proposed, frozen=True, kw_only=True, tag="proposed"):
    arguments: msgspec.Raw


class _ApprovedText(Approved, frozen=True, kw_only=True, tag="approved"):
    arguments: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _ExecutedText(Executed, frozen=True, kw_only=True, tag="executed"):
    result: msgspec.Raw = msgspec.Raw(b"null")


_TextEvent = (
    _ProposedText | Paused | Denied | _ExecutedText | Failed | _ApprovedText | Resumed | Confirmed | LateOutcome
)


class TextCodec:
    """Decodes events whose arguments and result stay JSON text, so that rows can be compared byte by byte.

    :param codec: decodes what is of an older schema version
    """

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._current: set[tuple[str, int]] = set()
        self._decoder: msgspec.json.Decoder[ToolEvent] = msgspec.json.Decoder(_TextEvent)

    def decode(self, kind: str, schema_version: int, data: bytes | str, position: int) -> ToolEvent | None:
        """See ``Codec.decode``."""
        if (kind, schema_version) not in self._current:
            if not self._codec.is_current(kind, schema_version):
                return self._codec.decode(kind, schema_version, data, position)
            self._current.add((kind, schema_version))
        event = self._decoder.decode(data)
        force_setattr(event, "position", position)
        return event


def text_of(content: Any) -> bytes:
    """Return the JSON text of arguments or a result, as it stands where it is text already."""
    return bytes(content) if isinstance(content, msgspec.Raw) else encode_json(content)
