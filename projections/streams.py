"""Whole streams folded from the log's records, many at a time, with everything that is wrong in them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Any

import msgspec

from events.errors import TransitionRejected
from events.keys import tenant_column, tenant_of
from events.records import Pager, Record, stream_records
from events.store import Store
from events.transitions import kind_of
from events.types import Executed, Recorded, ToolEvent
from projections.fold import TextCodec, fold_row
from projections.report import Problem, ProblemKind
from projections.row import AttemptRow

__all__ = ("StreamFold", "fold_streams")


_parse = datetime.fromisoformat


class StreamFold:
    """The fold of one stream, record by record.

    ``row`` is the state after the last record; it stands still at the first event that is damaged, forbidden, or of an
    unknown kind, and ``whole`` is False then.
    """

    __slots__ = (
        "_codec",
        "key",
        "last",
        "payloads",
        "problems",
        "row",
        "stream",
        "tenant",
        "unknown",
        "version",
        "whole",
    )

    def __init__(self, codec: TextCodec, stream: int) -> None:
        self._codec = codec
        self.stream = stream
        self.row: AttemptRow | None = None
        self.whole = True
        self.version = self.last = self.unknown = 0
        # Neither can occur in a log, so the first record is always placed.
        self.tenant = self.key = "\0"
        # Tuples: a stream seldom has any of them, and two empty lists for each of a page cost more than its fold.
        self.problems: tuple[Problem, ...] = ()
        self.payloads: tuple[Executed, ...] = ()

    def add(self, record: Record) -> None:
        """Take the next record in."""
        position, _, version, tenant, key, event_id, kind, schema_version, recorded_at, data = record
        if not (version == self.version + 1 and position > self.last and tenant == self.tenant and key == self.key):
            self._place(position, version, tenant, key)
        self.version, self.last = version, position
        try:
            event = self._codec.decode(kind, schema_version, data, position)
            if isinstance(recorded_at, str):
                _parse(recorded_at)
        except (msgspec.DecodeError, ValueError, TypeError, LookupError) as error:
            self._fail("event", f"the event's text is damaged ({error})", position)
            return
        if event is None:
            self.unknown += 1
            self.whole = False
            return
        if event.id != event_id or event.key != key or kind_of(event) != kind or tenant_column(event.user_id) != tenant:
            self._fail("event", "the event's text and its columns disagree", position)
            return
        if self.whole:
            self._fold(event, recorded_at)

    def _place(self, position: int, version: int, tenant: str, key: str) -> None:
        if self.version == 0:
            self.tenant, self.key = tenant, key
            if version == 1 and position != self.stream:
                self._fail("stream", f"it has the number {self.stream}, but begins elsewhere", position)
        elif tenant != self.tenant or key != self.key:
            self._fail("stream", "an event of another call or tenant stands in it", position)
        if version != self.version + 1:
            self._fail("stream", f"version {self.version + 1} is missing: {version} comes next", position)
        if position <= self.last:
            self._fail("stream", f"version {version} stands before version {version - 1}", position)

    def _fold(self, event: ToolEvent, moment: Any) -> None:
        # Moments stay as they are stored: the row has the very same text.
        recorded = Recorded(
            position=self.last,
            key=self.key,
            version=self.version,
            recorded_at=moment,
            user_id=event.user_id,
            event=event,
        )
        try:
            self.row = fold_row(self.row, recorded)
        except TransitionRejected as error:
            self._fail("transition", str(error), self.last)
            return
        if isinstance(event, Executed) and event.result_digest is not None:
            self.payloads += (event,)

    def _fail(self, kind: ProblemKind, message: str, position: int) -> None:
        self.whole = False
        self.problems += (self.problem(kind, message, position),)

    def problem(self, kind: ProblemKind, message: str, position: int | None = None) -> Problem:
        """Return a problem of this stream."""
        return Problem(kind=kind, message=message, key=self.key, user_id=tenant_of(self.tenant), position=position)


async def fold_streams(
    store: Store, codec: TextCodec, after: int, upto: int, pager: Pager
) -> AsyncGenerator[list[StreamFold], None]:
    """Yield the folds of the streams numbered ``after`` < stream <= ``upto``, in order, some at a time."""
    cursor = (after, 2**31 - 1)
    fold: StreamFold | None = None
    while True:
        asked = pager.size
        records = await stream_records(store, cursor, upto, pager)
        done: list[StreamFold] = []
        for record in records:
            stream = record[1]
            if fold is None or fold.stream != stream:
                if fold is not None:
                    done.append(fold)
                fold = StreamFold(codec, stream)
            fold.add(record)
        if len(records) < asked:
            yield done if fold is None else [*done, fold]
            return
        cursor = (records[-1][1], records[-1][2])
        yield done
