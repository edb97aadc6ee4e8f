"""Every stream beside its row."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from sqlalchemy import and_, select

from events.keys import tenant_of
from events.records import Pager, raw_text, stream_records
from events.schema import payloads
from events.store import Store
from events.types import Executed
from projections.columns import COLUMN_NAMES, folded_values, raw_columns, stored_values, unlike_columns
from projections.fold import TextCodec
from projections.portions import Part
from projections.report import Problem
from projections.schema import attempts
from projections.streams import StreamFold, fold_streams

__all__ = ("Comparison", "without_stream")

_VERSION = COLUMN_NAMES.index("version")
_POSITION = COLUMN_NAMES.index("position")
_KEY = COLUMN_NAMES.index("key")
_TENANT = COLUMN_NAMES.index("tenant")
_LONG = tuple([COLUMN_NAMES.index(name) for name in ("arguments", "result", "error")])


class Comparison:
    """Compares streams with rows, page by page, both in the order of stream numbers."""

    def __init__(self, store: Store, codec: TextCodec) -> None:
        self.store = store
        self.codec = codec
        self._row_pager, self._record_pager = Pager(), Pager()

    async def parts(self, after: int, upto: int) -> AsyncGenerator[Part, None]:
        """Yield what is wrong with the streams and rows numbered ``after`` < stream <= ``upto``.

        :raises LogUnavailable: if the database cannot be read
        """
        pager = self._row_pager
        while after < upto:
            rows = await self._rows(after, upto, pager.size)
            end = rows[-1][0] if len(rows) == pager.size else upto
            pager.saw(len(rows), sum([_size(row) for row in rows]))
            yield await self._compare(rows, after, end)
            after = end

    async def _rows(self, after: int, upto: int, limit: int) -> Sequence[Any]:
        statement = select(*raw_columns(self.store.dialect)).where(attempts.c.stream > after, attempts.c.stream <= upto)
        return await self.store.read(statement.order_by(attempts.c.stream).limit(limit))

    async def _compare(self, rows: Sequence[Any], after: int, end: int) -> Part:
        by_stream = {row[0]: row for row in rows}
        problems: list[Problem] = []
        events = streams = unknown = 0
        async with aclosing(fold_streams(self.store, self.codec, after, end, self._record_pager)) as pages:
            async for page in pages:
                for fold in page:
                    row = by_stream.pop(fold.stream, None)
                    if fold.problems or fold.payloads or row is None or not _agrees(row, fold):
                        problems += await self._check(fold, row)
                events += sum([fold.version for fold in page])
                streams += len(page)
                unknown += sum([fold.unknown for fold in page])
        problems += [without_stream(row) for row in by_stream.values()]
        return Part(upto=end, events=events, streams=streams, unknown=unknown, problems=tuple(problems))

    async def _check(self, fold: StreamFold, row: Sequence[Any] | None) -> Sequence[Problem]:
        for event in fold.payloads:
            fold.problems += tuple(await self._check_payload(fold, event))
        if fold.problems or (row is not None and _agrees(row, fold)):
            return fold.problems
        # The row was read before the events: an append in between is no fault, so look again before saying so.
        return await self._look_again(fold)

    async def _check_payload(self, fold: StreamFold, event: Executed) -> list[Problem]:
        content = raw_text(payloads.c.content, self.store.dialect)
        where = and_(payloads.c.tenant == fold.tenant, payloads.c.digest == event.result_digest)
        rows = await self.store.read(select(content).where(where))
        if not rows:
            return [fold.problem("payload", "its whole result is missing", event.position)]
        text = rows[0][0] if isinstance(rows[0][0], bytes) else rows[0][0].encode()
        if hashlib.sha256(text).hexdigest() != event.result_digest:
            return [fold.problem("payload", "its whole result is not what was recorded", event.position)]
        return []

    async def _look_again(self, fold: StreamFold) -> Sequence[Problem]:
        """Compare one stream, the row first, then the events up to its version: nothing can come in between."""
        statement = select(*raw_columns(self.store.dialect)).where(attempts.c.stream == fold.stream)
        rows = await self.store.read(statement)
        if not rows:
            return [fold.problem("stream", "it has no row in tool_call_attempts")]
        row = rows[0]
        if row[_VERSION] < fold.version:
            return [fold.problem("row", f"it is at version {row[_VERSION]}, the log is at {fold.version}")]
        again = await self._fold_until(fold.stream, row[_VERSION])
        if again.problems or _agrees(row, again):
            return again.problems
        if row[_VERSION] != again.version:
            return [again.problem("row", f"it is at version {row[_VERSION]}, the log is at {again.version}")]
        names = [] if again.row is None else unlike_columns(stored_values(row), folded_values(again.row))
        return [again.problem("row", f"it differs from its events in {', '.join(names) or 'position'}")]

    async def _fold_until(self, stream: int, version: int) -> StreamFold:
        fold = StreamFold(self.codec, stream)
        pager = Pager()
        while records := await stream_records(self.store, (stream, fold.version), stream, pager):
            for record in records:
                if record[2] > version:
                    return fold
                fold.add(record)
        return fold


def _agrees(row: Sequence[Any], fold: StreamFold) -> bool:
    if not fold.whole:
        # Only the release that knows the unknown event can say what it did to the other columns.
        return bool(row[_VERSION] == fold.version and row[_POSITION] == fold.last)
    return fold.row is not None and stored_values(row[: len(COLUMN_NAMES)]) == folded_values(fold.row)


def _size(row: Sequence[Any]) -> int:
    return sum(len(row[index]) for index in _LONG if row[index] is not None)


def without_stream(row: Sequence[Any]) -> Problem:
    """Return the problem of a row that is there without any event."""
    message = f"it has no events: the log has no stream {row[0]}"
    return Problem(kind="row", message=message, key=row[_KEY], user_id=tenant_of(row[_TENANT]))
