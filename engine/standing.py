"""Where a call stands: its row, and what its stream says of the gate. From the log alone, on any worker."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from engine.catching_up import catch_up
from engine.runtime import Runtime
from events.errors import LogUnavailable, NotFound, Refused
from events.keys import require_storable
from events.transitions import Phase, describe
from events.types import Approved, Paused, Proposed, Resumed, ToolEvent
from projections.row import AttemptRow
from projections.rows import read_attempt

__all__ = ("Standing", "impossible", "stand")


class Standing(msgspec.Struct, frozen=True):
    """A call as it stands.

    :ivar opening: its proposal as it was made
    :ivar proposed: the same with the arguments that run: the approver's, where they were edited
    :ivar paused: its last pause
    :ivar rules: the rules of all its pauses: what its approvers were told
    :ivar approved: its last approval
    :ivar answer: what came back for its last request for input
    """

    row: AttemptRow
    opening: Proposed
    proposed: Proposed
    paused: Paused | None = None
    rules: frozenset[str | None] = frozenset()
    approved: Approved | None = None
    answer: Any | msgspec.UnsetType = msgspec.UNSET

    @property
    def phase(self) -> Phase | None:
        """Where it stands in its life; None once it has ended."""
        return self.row.attempt.phase

    @property
    def request(self) -> Any:
        """What its tool asked for, if that is what it waits or waited for."""
        return None if self.paused is None else self.paused.request

    def after(self, event: ToolEvent) -> Standing:
        """Return the standing with one more event of its stream."""
        match event:
            case Paused():
                return replace(self, paused=event, rules=self.rules | {event.rule}, answer=msgspec.UNSET)
            case Approved(arguments=msgspec.UnsetType()):
                return replace(self, approved=event)
            case Approved(arguments=edited):
                return replace(self, approved=event, proposed=replace(self.proposed, arguments=edited, raw=None))
            case Resumed(answer=answer) if not isinstance(answer, msgspec.UnsetType):
                return replace(self, answer=answer)
            case _:
                return self


async def stand(runtime: Runtime, key: str, user_id: str | None) -> Standing:
    """Return where a call stands.

    :raises NotFound: if the tenant has no such call
    :raises LogUnavailable: if the log cannot be read, or what became of the call is still in this machine's spool
    """
    try:
        require_storable(key, "the key")
        require_storable(user_id, "the user id")
    except Refused:
        raise _unknown(key) from None
    await catch_up(runtime, user_id, key=key)
    row = await read_attempt(runtime.log, key, user_id)
    if row is None:
        raise _unknown(key)
    # As of the row: what comes later is met by the append's expected version.
    stream = [
        record.event async for record in runtime.log.read_stream(key, user_id=user_id) if record.version <= row.version
    ]
    if not stream or not isinstance(stream[0], Proposed):
        raise LogUnavailable(f"the stream of call {key!r} does not begin with a proposal; run verify")
    standing = Standing(row, stream[0], stream[0])
    for event in stream[1:]:
        standing = standing.after(event)
    return standing


def impossible(standing: Standing, what: str, hint: str = "") -> Refused:
    """Return the error that says what cannot be done to a call, and how it stands."""
    row = standing.row
    late = ", with a late outcome" if row.late else ""
    return Refused(f"call {row.key!r} cannot be {what}: it is {describe(row.attempt)}{late}{hint and '; '}{hint}")


def _unknown(key: str) -> NotFound:
    return NotFound(f"there is no call {key!r}")
