"""What the log has of a call, in the form in which ``execute`` yields it."""

from __future__ import annotations

from events.log import EventLog
from events.types import Denied, Executed, Failed, Paused, Proposed, StreamEvent

__all__ = ("recorded_events", "recorded_opening", "recorded_since")


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


async def recorded_since(log: EventLog, proposed: Proposed, version: int) -> StreamEvent | None:
    """Return the first Paused, Denied, Executed or Failed of a call beyond a version of its stream, if there is one.

    :raises LogUnavailable: if the log cannot be read
    """
    # To its end: a generator that is left half-way would be finished by the garbage collector.
    stream = [record async for record in log.read_stream(proposed.key, user_id=proposed.user_id)]
    for later in [record.event for record in stream if record.version > version]:
        match later:
            case Executed() as event:
                return await log.whole(event, user_id=proposed.user_id)
            case Paused() | Denied() | Failed() as event:
                return event
            case _:
                pass
    return None


async def recorded_opening(log: EventLog, key: str, user_id: str | None) -> Proposed | None:
    """Return the proposal that a stream begins with; None where the tenant has no such stream.

    :raises LogUnavailable: if the log cannot be read
    """
    # To its end: a generator that is left half-way would be finished by the garbage collector.
    stream = [record.event async for record in log.read_stream(key, user_id=user_id)]
    return stream[0] if stream and isinstance(stream[0], Proposed) else None
