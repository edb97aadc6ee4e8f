"""``EventLog``: the append-only log of tool calls (DESIGN 4).

What it guarantees: an append is atomic, durable on return, and idempotent by the ids of its events; readers see
positions in order and never skip one; a stream's versions count from 1 without a gap; no tenant sees another's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from operator import attrgetter

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from events.codec import Codec, Encoded
from events.errors import NotFound, Refused, TransitionRejected, VersionConflict
from events.keys import is_plain, require_storable, tenant_column
from events.store import Appended, InlineProjection, Refusal, Store, StreamAppend
from events.subscription import Subscription
from events.transitions import kind_of, requirement
from events.types import Executed, Recorded, ToolEvent
from events.writer import Writer, WriterStatistics

__all__ = ("Append", "EventLog", "LogStatistics")

_AT_ONCE = 1 << 21
"""Bytes of a result up to which the event loop waits while it is split off and hashed."""

_IDENTIFIERS = ("id", "call_id", "message_id", "tool_id", "tool_name", "action_name", "llm_name")

_identifiers = attrgetter("key", "user_id", *_IDENTIFIERS)


class Append(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One stream's share of :meth:`EventLog.append_many`; the fields are the parameters of ``append``."""

    key: str
    events: tuple[ToolEvent, ...]
    expected_version: int
    user_id: str | None


class LogStatistics(msgspec.Struct, frozen=True):
    """A snapshot of the log: its writer's counts, and the last position this process appended."""

    writer: WriterStatistics
    position: int


class EventLog:
    """The log over one store; made by ``open_log``."""

    def __init__(self, store: Store, projection: InlineProjection, codec: Codec, writer: Writer) -> None:
        self.store = store
        self.codec = codec
        self._projection = projection
        self._writer = writer
        self._position = 0

    def __repr__(self) -> str:
        return f"<EventLog {self.store!r} at {self._position}>"

    def statistics(self) -> LogStatistics:
        """Return a snapshot."""
        return LogStatistics(self._writer.statistics(), self._position)

    async def append(
        self,
        key: str,
        events: Sequence[ToolEvent],
        expected_version: int,
        user_id: str | None,
        *,
        dead_worker: str | None = None,
        result_json: bytes | None = None,
    ) -> list[Recorded[ToolEvent]]:
        """Append events to a stream, all or none; durable on return.

        Appending the same events (by id) again returns what is recorded of them. Cancelled while it is under way, the
        commit finishes first; whether it did is told by appending again.

        :param expected_version: how many events the stream has; 0: it must not exist
        :param user_id: the tenant; every event's own must equal it
        :param dead_worker: only if this worker's lease is over at the moment of the append
        :param result_json: the JSON of an Executed's result, where the caller has encoded it already
        :raises VersionConflict: if the stream is at another version, or is not this tenant's
        :raises TransitionRejected: if the lifecycle does not allow the first event in the attempt's state, or the
            dead worker is alive
        :raises Refused: if the events do not belong together, or an identifier cannot be stored
        :raises LogUnavailable: if the log cannot be written
        """
        wanted = Append(key=key, events=tuple(events), expected_version=expected_version, user_id=user_id)
        if result_json is None or len(result_json) <= _AT_ONCE:
            prepared, encoded = self._prepare(wanted, dead_worker, result_json)
        else:
            prepared, encoded = await anyio.to_thread.run_sync(self._prepare, wanted, dead_worker, result_json)
        verdict = (await self._writer.submit((prepared,)))[0]
        if isinstance(verdict, Refusal):
            raise _refused(wanted.events[0], expected_version, verdict)
        return self._recorded(wanted, encoded, verdict)

    async def append_one(
        self, event: ToolEvent, expected_version: int, *, result_json: bytes | None = None
    ) -> ToolEvent:
        """Append one event to its own stream, and return it with its position; the rest as :meth:`append`.

        Nearly every append is like this, and nothing is made here that only several events need.
        """
        if result_json is not None and len(result_json) > _AT_ONCE:
            (record,) = await self.append(event.key, (event,), expected_version, event.user_id, result_json=result_json)
            return record.event
        repeatable = _require_legal(event, expected_version)
        encoded = self._encode(event, result_json)
        stored, payload = (encoded.stored,), encoded.payload
        unit = StreamAppend(
            tenant_column(event.user_id),
            event.key,
            expected_version,
            stored,
            self._projection.change((event,), stored),
            () if payload is None else (payload,),
            None,
            repeatable,
        )
        (verdict,) = await self._writer.submit((unit,))
        if isinstance(verdict, Refusal):
            raise _refused(event, expected_version, verdict)
        position = verdict.positions[0]
        if position > self._position:
            self._position = position
        return replace(encoded.event, position=position)

    def _encode(self, event: ToolEvent, result_json: bytes | None) -> Encoded:
        try:
            return self.codec.encode(event, result_json)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise Refused(
                f"event {event.id} of {event.key!r} holds something that has no JSON form: {error}"
            ) from error

    async def append_many(self, appends: Sequence[Append]) -> list[list[Recorded[ToolEvent]]]:
        """Append to several streams, all or none; the rest as :meth:`append`."""
        if not appends:
            return []
        if len({(append.user_id, append.key) for append in appends}) < len(appends):
            raise Refused("one stream occurs twice in this append; put its events together")
        prepared = [self._prepare(append, None, None) for append in appends]
        verdicts = await self._writer.submit(tuple([unit for unit, _ in prepared]))
        recorded = []
        for append, (_, encoded), verdict in zip(appends, prepared, verdicts, strict=True):
            if isinstance(verdict, Refusal):
                raise _refused(append.events[0], append.expected_version, verdict)
            recorded.append((append, encoded, verdict))
        return [self._recorded(*entry) for entry in recorded]

    def _prepare(
        self, append: Append, dead_worker: str | None, result_json: bytes | None
    ) -> tuple[StreamAppend, list[Encoded]]:
        repeatable = _require_consistent(append)
        encoded = [self._encode(event, result_json) for event in append.events]
        stored = tuple([entry.stored for entry in encoded])
        unit = StreamAppend(
            tenant_column(append.user_id),
            append.key,
            append.expected_version,
            stored,
            self._projection.change(append.events, stored),
            tuple([entry.payload for entry in encoded if entry.payload is not None]),
            dead_worker,
            repeatable,
        )
        return unit, encoded

    def _recorded(self, append: Append, encoded: list[Encoded], appended: Appended) -> list[Recorded[ToolEvent]]:
        self._position = max(self._position, appended.positions[-1])
        version, recorded = append.expected_version, []
        for entry, position in zip(encoded, appended.positions, strict=True):
            version += 1
            record = Recorded(
                position=position,
                key=append.key,
                version=version,
                recorded_at=appended.recorded_at,
                user_id=append.user_id,
                event=replace(entry.event, position=position),
            )
            recorded.append(record)
        return recorded

    def read(self, after: int = 0, *, user_id: str | None) -> AsyncIterator[Recorded[ToolEvent]]:
        """Yield one tenant's events with a position beyond ``after``, in order, up to the log's present end.

        Events of a kind or version this release does not know are skipped.

        :raises LogUnavailable: if the log cannot be read, or an event's text is damaged
        """
        from events.reading import read_log

        return read_log(self, after, tenant_column(user_id))

    def read_all(self, after: int = 0) -> AsyncIterator[Recorded[ToolEvent]]:
        """Yield every tenant's events; otherwise as :meth:`read`."""
        from events.reading import read_log

        return read_log(self, after, None)

    def read_stream(self, key: str, *, user_id: str | None) -> AsyncIterator[Recorded[ToolEvent]]:
        """Yield the events of one stream, in order; nothing where the tenant has no such stream."""
        from events.reading import read_one_stream

        return read_one_stream(self, key, tenant_column(user_id))

    async def head(self) -> int:
        """Return the position up to which the log is settled: nothing can appear at or below it any more."""
        return await self.store.head()

    def subscribe(self, name: str | None, after: int = 0) -> Subscription:
        """Return a subscription to every tenant's events.

        :param name: keeps its checkpoint under this name; None: none is kept
        :param after: where to begin when there is no checkpoint of that name yet
        """
        from events.reading import subscription

        return subscription(self, name, after)

    async def whole(self, event: Executed, *, user_id: str | None) -> Executed:
        """Return an Executed with its whole result, from the payload table where it was too long for the event.

        :raises NotFound: if the tenant has no such payload
        """
        from events.reading import payload_content

        if event.result_digest is None or event.result_length is None:
            return event
        content = await payload_content(self, event.result_digest, tenant_column(user_id))
        if content is None:
            raise NotFound(f"the whole result of call {event.key!r} is not there")
        from events.codec import whole_result

        return whole_result(event, content)

    async def aclose(self) -> None:
        """Close the store."""
        await self.store.aclose()


def _require_consistent(append: Append) -> bool:
    """Return whether the first event may legally occur again."""
    key, user_id = append.key, append.user_id
    if not append.events:
        raise Refused(f"nothing to append to {key!r}: give at least one event")
    for event in append.events:
        if event.key != key or event.user_id != user_id:
            raise Refused(f"event {event.id} is of call {event.key!r} of another stream or tenant than {key!r}")
    for event in append.events[1:]:
        _require_storable(event)
    return _require_legal(append.events[0], append.expected_version)


def _require_legal(event: ToolEvent, expected_version: int) -> bool:
    """Return whether a stream's next event may legally occur again."""
    _require_storable(event)
    rule = requirement(event)
    if expected_version:
        if rule.status is not None:
            return rule.repeatable
        raise TransitionRejected(event.key, kind_of(event), "there already")
    if rule.status is not None:
        raise TransitionRejected(event.key, kind_of(event), "not there yet")
    return False


def _require_storable(event: ToolEvent) -> None:
    # Nearly always all of them are short and plain: one look at them together tells.
    if is_plain("".join(filter(None, _identifiers(event)))):
        return
    require_storable(event.key, "the key")
    require_storable(event.user_id, "the user id")
    for name in _IDENTIFIERS:
        require_storable(getattr(event, name), f"the event's {name}")


def _refused(event: ToolEvent, expected_version: int, refusal: Refusal) -> Exception:
    key, kind = event.key, kind_of(event)
    if refusal.lease_alive:
        return TransitionRejected(key, kind, "in the hands of a live worker")
    if refusal.version is None or refusal.version != expected_version:
        return VersionConflict(key, expected_version, refusal.version)
    waiting = f" ({refusal.pause_type})" if refusal.pause_type else ""
    late = ", with a late outcome" if refusal.late else ""
    return TransitionRejected(key, kind, f"{refusal.status}/{refusal.gate}{waiting}{late}")
