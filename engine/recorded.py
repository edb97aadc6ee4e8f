"""What the log has of a call, in the form in which ``execute`` yields it."""

from __future__ import annotations

from events.log import EventLog
from events.types import Denied, Executed, Failed, Paused, Proposed, StreamEvent

__all__ = ("recorded_events",)


async def recorded_events(log: EventLog, key: str, user_id: str | None) -> list[StreamEvent]:
    """Return the recorded Proposed of a call, and the last of the other four kinds with its whole result.

    :raises LogUnavailable: if the log cannot be read
    """
    opening: Proposed | None = None
    last: Paused | Denied | Executed | Failed | None = None
    async for record in log.read_stream(key, user_id=user_id):
        match record.event:
            case Proposed() as event:
                opening = event
            case Paused() | Denied() | Failed() | Executed() as event:
                last = event
            case _:
                pass
    if isinstance(last, Executed):
        last = await log.whole(last, user_id=user_id)
    return [event for event in (opening, last) if event is not None]
