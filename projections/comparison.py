"""The work of ``verify``: the hash chain, then every stream beside its row, then the streams' own table."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace
from sqlalchemy import and_, select

from events.keys import tenant_of
from events.log import EventLog
from events.records import Pager, raw_text, stream_records
from events.schema import events, payloads
from events.seal import CheckedSeal, check_seals, last_seal
from events.types import Executed
from projections.columns import COLUMN_NAMES, folded_values, raw_columns, stored_values, unlike_columns
from projections.fold import TextCodec
from projections.numbers import check_numbers, misnumbered
from projections.report import Problem, Report, Resume
from projections.schema import attempts
from projections.streams import StreamFold, fold_streams

__all__ = ("Comparison",)

_VERSION = COLUMN_NAMES.index("version")
_POSITION = COLUMN_NAMES.index("position")
_KEY = COLUMN_NAMES.index("key")
_TENANT = COLUMN_NAMES.index("tenant")
_LONG = tuple([COLUMN_NAMES.index(name) for name in ("arguments", "result", "error")])


class Comparison:
    """One run over the log; ``state`` is how far it has come."""

    def __init__(
        self, log: EventLog, state: Resume, progress: Callable[[int, int], None], checkpoint: Callable[[Resume], None]
    ) -> None:
        self.log = log
        self.store = log.store
        self.codec = TextCodec(log.codec)
        self.state = state
        self._progress = progress
        self._checkpoint = checkpoint

    def _advance(self, state: Resume) -> None:
        self.state = state
        sealed = state.head if state.sealed is None else min(state.sealed, state.head)
        self._progress(sealed + state.stream, 2 * state.head)
        self._checkpoint(state)

    async def check_seals(self) -> None:
        """Compute the hash chain again."""
        if self.state.sealed is None:
            return
        async with aclosing(check_seals(self.log, self.state.sealed)) as checked:
            async for entry in checked:
                self._advance(replace(self.state, sealed=entry.seal.last).with_problems(_unsealed(entry)))
        self._advance(replace(self.state, sealed=None))

    async def _compare_streams(self) -> None:
        """Fold stream by stream beside the rows, both in the order of stream numbers."""
        row_pager, record_pager = Pager(), Pager()
        while self.state.stream < self.state.head:
            rows = await self._rows(self.state.stream, self.state.head, row_pager.size)
            end = rows[-1][0] if len(rows) == row_pager.size else self.state.head
            row_pager.saw(len(rows), sum([_size(row) for row in rows]))
            await self._compare(rows, end, record_pager)

    async def _rows(self, after: int, upto: int, limit: int) -> Sequence[Any]:
        statement = select(*raw_columns(self.store.dialect)).where(attempts.c.stream > after, attempts.c.stream <= upto)
        return await self.store.read(statement.order_by(attempts.c.stream).limit(limit))

    async def _compare(self, rows: Sequence[Any], end: int, pager: Pager) -> None:
        by_stream = {row[0]: row for row in rows}
        problems: list[Problem] = []
        state = self.state
        async with aclosing(fold_streams(self.store, self.codec, state.stream, end, pager)) as pages:
            async for page in pages:
                for fold in page:
                    row = by_stream.pop(fold.stream, None)
                    if fold.problems or fold.payloads or row is None or not _agrees(row, fold):
                        problems += await self._check(fold, row)
                state = replace(
                    state,
                    events=state.events + sum(fold.version for fold in page),
                    streams=state.streams + len(page),
                    unknown=state.unknown + sum(fold.unknown for fold in page),
                ).with_problems(problems)
                problems = []
        problems += [_without_stream(row) for row in by_stream.values()]
        self._advance(replace(state, stream=end).with_problems(problems))

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

    async def compare(self) -> None:
        """Compare streams with rows, and ``tool_call_streams`` with both."""
        await self._compare_streams()
        numbers = await check_numbers(self.store, self.state.head)
        self.state = self.state.with_problems(numbers.problems)
        # Each entry that begins a stream begins one of its own: as many as there are streams, and none lacks its entry.
        if numbers.begun != self.state.streams or self.state.problems:
            async with aclosing(misnumbered(self.store)) as pages:
                async for problems in pages:
                    self.state = self.state.with_problems(problems)
        await self._check_rows_beyond()

    async def _check_rows_beyond(self) -> None:
        begun = select(events.c.position).where(events.c.stream == attempts.c.stream).exists()
        statement = select(*raw_columns(self.store.dialect)).where(attempts.c.stream > self.state.head, ~begun)
        rows = await self.store.read(statement.limit(1000))
        self.state = self.state.with_problems([_without_stream(row) for row in rows])

    async def report(self) -> Report:
        """Return what was found."""
        state = self.state
        last = await last_seal(self.store)
        self._advance(replace(state, stream=state.head))
        return Report(
            ok=not state.problems,
            problems=state.problems,
            more=state.more,
            events=state.events,
            streams=state.streams,
            unknown=state.unknown,
            head=state.head,
            sealed=last.last if last else 0,
            seal=last.digest if last else None,
        )


def _agrees(row: Sequence[Any], fold: StreamFold) -> bool:
    if not fold.whole:
        # Only the release that knows the unknown event can say what it did to the other columns.
        return bool(row[_VERSION] == fold.version and row[_POSITION] == fold.last)
    return fold.row is not None and stored_values(row[: len(COLUMN_NAMES)]) == folded_values(fold.row)


def _size(row: Sequence[Any]) -> int:
    return sum(len(row[index]) for index in _LONG if row[index] is not None)


def _unsealed(entry: CheckedSeal) -> list[Problem]:
    if entry.problem is None:
        return []
    return [Problem(kind="seal", message=entry.problem, position=entry.seal.last)]


def _without_stream(row: Sequence[Any]) -> Problem:
    message = f"it has no events: the log has no stream {row[0]}"
    return Problem(kind="row", message=message, key=row[_KEY], user_id=tenant_of(row[_TENANT]))
