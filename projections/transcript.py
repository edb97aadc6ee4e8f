"""The transcript: for a message, every call with its result, in call order (DESIGN 5)."""

from __future__ import annotations

from typing import Any

import msgspec

from events.log import EventLog
from events.transitions import Gate, Status
from events.types import Executed, PauseType, ResultStatus
from projections.row import AttemptRow

__all__ = ("TranscriptEntry", "transcript")


class TranscriptEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a turn: what was asked, where it stands, and its whole result or its error.

    ``arguments`` are those that ran (or would run). ``result`` is there once the call is executed; ``error`` says why a
    call was denied or failed; neither: it is under way or waits (``pause_type``).
    """

    key: str
    call_id: str
    llm_name: str
    tool_name: str
    action_name: str
    arguments: Any
    status: Status
    gate: Gate
    pause_type: PauseType | None
    result_status: ResultStatus | None
    result: Any
    error: str | None


async def transcript(log: EventLog, message_id: str, *, user_id: str | None) -> list[TranscriptEntry]:
    """Return the calls of a turn in the order in which they were proposed; refused repetitions never appear.

    :param message_id: the message, or the run of calls that had none
    :raises LogUnavailable: if the database cannot be read
    """
    from projections.rows import read_message

    rows = await read_message(log, message_id, user_id)
    return [await _entry(log, row) for row in rows if not row.duplicate]


async def _entry(log: EventLog, row: AttemptRow) -> TranscriptEntry:
    return TranscriptEntry(
        key=row.key,
        call_id=row.call_id,
        llm_name=row.llm_name,
        tool_name=row.tool_name,
        action_name=row.action_name,
        arguments=row.arguments,
        status=row.status,
        gate=row.gate,
        pause_type=row.pause_type if row.gate == "paused" else None,
        result_status=row.result_status,
        result=await _whole_result(log, row),
        error=row.error,
    )


async def _whole_result(log: EventLog, row: AttemptRow) -> Any:
    from events.codec import INLINE_LIMIT

    # The row has the head of a result that is too long for its event; only the event knows where the rest is.
    if not isinstance(row.result, str) or len(row.result) < INLINE_LIMIT:
        return row.result
    result = row.result
    async for recorded in log.read_stream(row.key, user_id=row.user_id):
        if isinstance(recorded.event, Executed):
            result = (await log.whole(recorded.event, user_id=row.user_id)).result
    return result
