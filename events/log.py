"""``EventLog``: the append-only log of tool calls (DESIGN 4).

What it guarantees: an append is atomic, durable on return, and idempotent by the ids of its events; readers see
positions in order and never skip one; a stream's versions count from 1 without a gap; no tenant sees another's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from itertools import repeat
from operator import attrgetter

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from events.codec import Codec, Encoded
from events.errors import NotFound, Refused, TransitionRejected, VersionConflict
from events.keys import is_plain, require_storable, tenant_column
from events.store import Appended, InlineProjection, Payload, Refusal, Store, StoredEvent, StreamAppend
from events.subscription import Subscription
from events.transitions import Requirement, kind_of, requirement
from events.types import Executed, Recorded, ToolEvent
from events.writer import Writer, WriterStatistics

__all__ = ("Append", "EventLog", "LogStatistics")

_AT_ONCE = 1 << 21
"""Bytes of a result up to which the event loop waits while it is split off and hashed."""

_IDENTIFIERS = ("id", "call_id", "message_id", "tool_id", "tool_name", "action_name", "llm_name")

_identifiers = attrgetter(*_IDENTIFIERS)


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
            raise _refused(wanted, verdict)
        return self._recorded(wanted, encoded, verdict)

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
                raise _refused(append, verdict)
            recorded.append((append, encoded, verdict))
        return [self._recorded(*entry) for entry in recorded]

    def _prepare(
        self, append: Append, dead_worker: str | None, result_json: bytes | None
    ) -> tuple[StreamAppend, list[Encoded]]:
        rule = _require_consistent(append)
        try:
            encoded = [*map(self.codec.encode, append.events, repeat(result_json))]
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise Refused(f"the events of {append.key!r} hold something that has no JSON form: {error}") from error
        # Nearly always it is one event: written out, for a comprehension costs as much as what is done in it.
        first = encoded[0]
        if len(encoded) == 1:
            stored: tuple[StoredEvent, ...] = (first.stored,)
            payloads: tuple[Payload, ...] = () if first.payload is None else (first.payload,)
        else:
            stored = tuple([entry.stored for entry in encoded])
            payloads = tuple([entry.payload for entry in encoded if entry.payload is not None])
        unit = StreamAppend(
            tenant_column(append.user_id),
            append.key,
            append.expected_version,
            stored,
            self._projection.change(append.events, stored),
            payloads,
            dead_worker,
            append.expected_version > 0 and rule.repeatable,
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


def _require_consistent(append: Append) -> Requirement:
    """Return the law's row for the first event."""
    key, user_id = append.key, append.user_id
    if not append.events:
        raise Refused(f"nothing to append to {key!r}: give at least one event")
    texts = [key, user_id or ""]
    for event in append.events:
        if event.key != key or event.user_id != user_id:
            raise Refused(f"event {event.id} is of call {event.key!r} of another stream or tenant than {key!r}")
        texts += filter(None, _identifiers(event))
    # Nearly always all of them are short and plain: one look at them together tells.
    if not is_plain("".join(texts)):
        _require_storable(append)
    rule = requirement(append.events[0])
    starts = rule.status is None
    if starts != (append.expected_version == 0):
        raise TransitionRejected(key, kind_of(append.events[0]), "there already" if starts else "not there yet")
    return rule


def _require_storable(append: Append) -> None:
    require_storable(append.key, "the key")
    require_storable(append.user_id, "the user id")
    for event in append.events:
        for name in _IDENTIFIERS:
            require_storable(getattr(event, name), f"the event's {name}")


def _refused(append: Append, refusal: Refusal) -> Exception:
    kind = kind_of(append.events[0])
    if refusal.lease_alive:
        return TransitionRejected(append.key, kind, "in the hands of a live worker")
    if refusal.version is None or refusal.version != append.expected_version:
        return VersionConflict(append.key, append.expected_version, refusal.version)
    waiting = f" ({refusal.pause_type})" if refusal.pause_type else ""
    late = ", with a late outcome" if refusal.late else ""
    return TransitionRejected(append.key, kind, f"{refusal.status}/{refusal.gate}{waiting}{late}")
