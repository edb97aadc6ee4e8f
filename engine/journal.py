"""Verbs over the log: what the engine writes of a call's life (DESIGN 6, Verbs over the log)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, cast
from uuid import UUID, uuid5

from msgspec.structs import replace

from engine.spool_entry import Late
from events.errors import Conflict, VersionConflict
from events.keys import new_id
from events.log import Append, EventLog
from events.types import Confirmed, Denied, Executed, Failed, LateOutcome, Paused, Proposed, StreamEvent, ToolEvent

__all__ = ("Journal", "with_confirmation")

_BESIDE: Final = UUID("0b3a7c52-7f0e-4d5e-9d0a-5c1f6f2e8a41")

# Tuples: a union is looked through by slower means, and this is done for every call.
_CLOSING: Final = (Paused, Denied, Executed, Failed)
_YIELDED: Final = (Proposed, *_CLOSING)

E = TypeVar("E", bound=ToolEvent)


class Journal:
    """Writes one engine's events. Each verb is one append: durable when it returns.

    :param observe: is told of every event that was appended
    """

    def __init__(
        self,
        log: EventLog,
        observe: Callable[[ToolEvent], None] = lambda _event: None,
    ) -> None:
        self._log = log
        self._observe = self._observer = observe

    def __repr__(self) -> str:
        return f"<Journal of {self._log!r}>"

    async def open(self, proposed: Proposed, *closing: ToolEvent) -> list[StreamEvent]:
        """Append a proposal, with what follows at once; return the events with their positions.

        :raises VersionConflict: if the key is taken
        :raises LogUnavailable: if it cannot be written; then the call must not run
        """
        if not closing:
            return [await self._append_one(proposed, 0)]
        records = await self._append(proposed, [proposed, *closing], 0)
        return [event for event in records if isinstance(event, _YIELDED)]

    async def record_proposed(self, proposed: Proposed) -> bool:
        """Append a proposal; True iff this call made the row. Whoever did not make it must not finish it.

        :raises LogUnavailable: if it cannot be written
        """
        try:
            await self.open(proposed)
        except VersionConflict:
            return False
        return True

    async def close(
        self,
        proposed: Proposed,
        outcome: Paused | Denied | Executed | Failed,
        version: int = 1,
        encoded: bytes | None = None,
    ) -> Paused | Denied | Executed | Failed:
        """Append what follows a proposal; an Executed that no message waits for is confirmed with it (BEHAVIOUR 100).

        :param version: the stream's version so far
        :param encoded: the JSON of an Executed's result, if it is in hand
        :raises Conflict: if the attempt has been closed by somebody else, or cannot be closed like this
        :raises LogUnavailable: if it cannot be written
        """
        if proposed.message_id is not None or not isinstance(outcome, Executed):
            return await self._append_one(outcome, version, encoded)
        event = (await self._append(proposed, with_confirmation(proposed, outcome), version, encoded))[0]
        assert isinstance(event, Executed)
        return event

    def when_appended(self, tell: Callable[[], None] | None) -> None:
        """Have somebody told of every append that succeeds; None: nobody any more, which costs an append nothing."""
        observe = self._observer
        if tell is None:
            self._observe = observe
            return

        def observed(event: ToolEvent) -> None:
            observe(event)
            tell()

        self._observe = observed

    async def orphan(self, proposed: Proposed, outcome: Failed, version: int, worker: str) -> Failed:
        """Append the end of a call whose worker is gone.

        :raises Conflict: if the worker is alive after all, or somebody else closed the call
        :raises LogUnavailable: if it cannot be written
        """
        (event,) = await self._append(proposed, [outcome], version, dead_worker=worker)
        assert isinstance(event, Failed)
        return event

    async def _append_one(self, event: E, version: int, encoded: bytes | None = None) -> E:
        appended = await self._log.append_one(event, version, result_json=encoded)
        self._observe(appended)
        return cast("E", appended)

    async def _append(
        self,
        proposed: Proposed,
        events: Sequence[ToolEvent],
        version: int,
        encoded: bytes | None = None,
        dead_worker: str | None = None,
    ) -> list[ToolEvent]:
        records = await self._log.append(
            proposed.key, events, version, proposed.user_id, dead_worker=dead_worker, result_json=encoded
        )
        appended = []
        for record in records:
            self._observe(record.event)
            appended.append(record.event)
        return appended

    async def mark_executed(self, proposed: Proposed, executed: Executed, version: int = 1) -> bool:
        """Append an Executed; False, and nothing changes, if the attempt cannot become executed (BEHAVIOUR 108).

        :raises LogUnavailable: if it cannot be written
        """
        return await self._mark(proposed, executed, version)

    async def mark_failed(self, proposed: Proposed, failed: Failed, version: int = 1) -> bool:
        """Append a Failed; False, and nothing changes, if the attempt cannot fail any more (BEHAVIOUR 108).

        :raises LogUnavailable: if it cannot be written
        """
        return await self._mark(proposed, failed, version)

    async def _mark(self, proposed: Proposed, outcome: Executed | Failed, version: int) -> bool:
        try:
            await self.close(proposed, outcome, version)
        except Conflict:
            return False
        return True

    async def upsert_executed(self, proposed: Proposed, executed: Executed) -> bool:
        """Append a proposal that could not be written and its outcome together, marked late.

        Where the row is there already, only this very proposal's, still proposed, is upgraded; False if it is not.

        :raises LogUnavailable: if it cannot be written
        """
        late_proposed, late_executed = replace(proposed, late=True), replace(executed, late=True)
        try:
            await self.open(late_proposed, *with_confirmation(late_proposed, late_executed))
        except VersionConflict:
            version = await self.version(proposed)
            return version is not None and await self._mark(proposed, late_executed, version)
        return True

    async def step(
        self, proposed: Proposed, events: Sequence[ToolEvent], version: int, dead_worker: str | None = None
    ) -> list[ToolEvent]:
        """Append what allows or claims a call, and what follows at once; never to be done later, from a spool.

        :raises Conflict: if the attempt has moved, cannot take this, or its ``dead_worker`` is alive
        :raises LogUnavailable: if it cannot be written
        """
        return await self._append(proposed, events, version, dead_worker=dead_worker)

    async def version(self, proposed: Proposed, claim: str | None = None) -> int | None:
        """Return how many events the stream of this very proposal has; None if its key is not there, or another's.

        :param claim: the id of the event that must be the stream's last; None as well if another is
        :raises LogUnavailable: if the log cannot be read
        """
        records = [record async for record in self._log.read_stream(proposed.key, user_id=proposed.user_id)]
        if not records or records[0].event.id != proposed.id or claim not in (None, records[-1].event.id):
            return None
        return records[-1].version

    async def keep_late(self, proposed: Proposed, outcome: Late) -> None:
        """Append an outcome that its attempt cannot take any more, as LateOutcome; no status changes.

        The outcome's own id is the event's, so that saying it again changes nothing.

        :raises LogUnavailable: if it cannot be written
        """
        late = LateOutcome(**_names(outcome), id=outcome.id, late=True, outcome=outcome)
        while (version := await self.version(proposed)) is not None:
            try:
                await self._append(proposed, [late], version)
            except Conflict:
                continue
            return

    async def confirm_all(self, executed: Sequence[tuple[Executed, int]]) -> int:
        """Confirm several calls of one message, all or none, and return how many.

        :param executed: each call's Executed, and its stream's version
        :raises Conflict: if one of them has moved meanwhile
        :raises LogUnavailable: if it cannot be written
        """
        appends = []
        for event, version in executed:
            confirmed = (_confirmation(event, new_id()),)
            appends.append(Append(key=event.key, events=confirmed, expected_version=version, user_id=event.user_id))
        for (record,) in await self._log.append_many(appends):
            self._observe(record.event)
        return len(appends)


def with_confirmation(proposed: Proposed, outcome: ToolEvent) -> list[ToolEvent]:
    """Return an outcome, with its Confirmed if it is an Executed that no message waits for."""
    if isinstance(outcome, Executed) and proposed.message_id is None:
        return [outcome, _confirmation(outcome, _id_beside(outcome))]
    return [outcome]


def _confirmation(event: ToolEvent, event_id: str) -> Confirmed:
    return Confirmed(**_names(event), id=event_id, late=event.late)


def _id_beside(event: ToolEvent) -> str:
    # The same whenever the same pair is appended again: that is how a resend is told from a rival.
    return str(uuid5(_BESIDE, event.id))


def _names(event: ToolEvent) -> dict[str, Any]:
    return {
        "key": event.key,
        "call_id": event.call_id,
        "message_id": event.message_id,
        "user_id": event.user_id,
        "tool_id": event.tool_id,
        "tool_name": event.tool_name,
        "action_name": event.action_name,
        "llm_name": event.llm_name,
        "labels": event.labels,
    }
