"""The work of ``rebuild``: fill a second table stream by stream, catch up with what is appended meanwhile, swap.

Rows only ever get newer (by version), so that a page may be written twice and nothing depends on who was faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

import anyio
from sqlalchemy import Connection, delete, inspect, select, update
from sqlalchemy.dialects import postgresql, sqlite

from events.errors import Conflict, LogUnavailable, SchemaMismatch
from events.log import EventLog
from events.records import changed_streams, records_of
from events.schema import checkpoints
from projections.columns import COLUMN_NAMES, given_columns
from projections.fold import TextCodec
from projections.hand import Hand, rows_of
from projections.portions import Hands, LostError, Part, Portion
from projections.report import Problem, Report
from projections.schema import attempts
from projections.second import second_process, wants_second
from projections.streams import StreamFold
from projections.swap import SHADOW, create_shadow, discard_some, drop_shadow, has_shadow, lock_live, swap_tables

__all__ = ("Replay",)

_CHECKPOINT = f"rebuild:{attempts.name}"
_WINDOW = 1000
_ROUNDS = 20
_TRIES = 10
_TOGETHER = 250


class Replay:
    """One rebuild: ``begin``, ``fill``, then ``finish`` or ``abandon``."""

    def __init__(self, log: EventLog, progress: Callable[[int, int], None]) -> None:
        self.log = log
        self.store = log.store
        self.problems: list[Problem] = []
        self._progress = progress
        self._codec = TextCodec(log.codec)
        self._head = self._filled = 0
        self._events = self._streams = self._unknown = 0

    async def begin(self) -> None:
        """Make the second table, or find the one that an interrupted rebuild left behind."""
        await self._discard()
        head = await self.log.head()

        def prepare(connection: Connection) -> tuple[int, int]:
            _require_known_columns(connection)
            # The checkpoint comes first in every transaction here: runs wait for each other at its row, nowhere else.
            connection.execute(_start(head, connection.dialect.name))
            started = connection.execute(_started().with_for_update()).scalar_one()
            if has_shadow(connection):
                filled = connection.exec_driver_sql(f"SELECT coalesce(max(stream), 0) FROM {SHADOW}")  # noqa: S608
                return started, filled.scalar_one()
            create_shadow(connection)
            connection.execute(update(checkpoints).where(checkpoints.c.name == _CHECKPOINT).values(position=head))
            return head, 0

        self._head, self._filled = await self.store.transact(prepare)

    async def fill(self, processes: int | None) -> None:
        """Fold every stream up to where the log was at the beginning; stops filling when one cannot be folded.

        A second process folds, where there may be one, while this one writes; what it leaves is folded here.
        """
        if processes is None and self.store.dialect == "postgresql":
            # The server takes the rows one by one: beside it, two processes are slower than one.
            processes = 1
        if wants_second(self.log, self._head - self._filled, processes):
            with suppress(LostError):
                async with second_process(self.log, self._head) as second:
                    await self._fill(second)
        if self._filled < self._head:
            await self._fill(Hand(self.log))
        self._progress(self._head, self._head)

    async def _fill(self, hands: Hands) -> None:
        async with aclosing(hands.parts(Portion("rows", self._filled, self._head))) as parts:
            async for part in parts:
                self._events += part.events
                self._streams += part.streams
                self._unknown += part.unknown
                self.problems += part.problems
                if part.streams and not self.problems:
                    await self.store.transact(partial(self._put, part=part))
                self._filled = part.upto
                if part.streams:
                    self._progress(self._filled, self._head)

    def _put(self, connection: Connection, part: Part) -> None:
        """Write folded rows; of calls that this release knows only in part, the live row is kept."""
        self._require_ours(connection)
        if self.store.dialect == "sqlite":
            for start in range(0, len(part.rows), _TOGETHER):
                columns, values = given_columns(part.rows[start : start + _TOGETHER])
                connection.exec_driver_sql(_insert(columns, len(values) // len(columns)), tuple(values))
        elif part.rows:
            connection.exec_driver_sql(_UPSERT, part.rows)
        for stream in part.kept:
            connection.exec_driver_sql(_keep(self.store.dialect), (stream,))

    def _require_ours(self, connection: Connection) -> None:
        if connection.execute(_started().with_for_update()).scalar() != self._head:
            raise Conflict("another rebuild finished first: this one has stopped; run verify")

    async def finish(self) -> None:
        """Catch up with the log until little is left, then bring the rest and swap, in one transaction."""
        cursor = self._head
        for _ in range(_ROUNDS):
            head = await self.log.head()
            await self._catch_up(cursor, head)
            settled, cursor = head - cursor, head
            if settled < _WINDOW:
                break
        for tries in range(1, _TRIES + 1):
            try:
                await self.store.transact(partial(self._swap, cursor=cursor))
            except LogUnavailable:
                # Somebody reads the live table for long; waiting on would hold up every append behind us.
                if self.problems or tries == _TRIES:
                    raise
                await anyio.sleep(0.1 * tries)
            else:
                break
        await self._discard()

    async def _discard(self) -> None:
        while await self.store.transact(discard_some):
            pass

    async def _catch_up(self, after: int, upto: int) -> None:
        while after < upto:
            end = min(after + _WINDOW, upto)
            numbers = [row[0] for row in await self.store.read(changed_streams(after, end))]
            await self.store.transact(partial(self._refold, numbers=numbers))
            after = end

    def _refold(self, connection: Connection, numbers: Sequence[int]) -> None:
        for start in range(0, len(numbers), 100):
            folds: dict[int, StreamFold] = {}
            for record in connection.execute(records_of(numbers[start : start + 100], self.store.dialect)):
                fold = folds.get(record[1]) or folds.setdefault(record[1], StreamFold(self._codec, record[1]))
                fold.add(record)
            if folds:
                part = rows_of(list(folds.values()), self.store.dialect)
                self.problems += part.problems
                self._put(connection, part)

    def _swap(self, connection: Connection, cursor: int) -> None:
        self._require_ours(connection)
        lock_live(connection)
        self._refold(connection, [row[0] for row in connection.execute(changed_streams(cursor))])
        if self.problems:
            return
        swap_tables(connection)
        connection.execute(delete(checkpoints).where(checkpoints.c.name == _CHECKPOINT))

    async def abandon(self) -> None:
        """Remove the second table."""

        def remove(connection: Connection) -> None:
            drop_shadow(connection)
            connection.execute(delete(checkpoints).where(checkpoints.c.name == _CHECKPOINT))

        await self.store.transact(remove)

    def report(self) -> Report:
        """Return what was done."""
        return Report(
            ok=not self.problems,
            problems=tuple(self.problems[:1000]),
            more=len(self.problems[1000:]),
            events=self._events,
            streams=self._streams,
            unknown=self._unknown,
            head=self._head,
        )


def _require_known_columns(connection: Connection) -> None:
    there = {column["name"] for column in inspect(connection).get_columns(attempts.name)}
    if strange := sorted(there - set(COLUMN_NAMES)):
        raise SchemaMismatch(
            f"{attempts.name} has columns that this release does not know ({', '.join(strange)}): "
            "rebuild with the newer release"
        )


def _started() -> Any:
    return select(checkpoints.c.position).where(checkpoints.c.name == _CHECKPOINT)


def _start(head: int, dialect: str) -> Any:
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    started = insert(checkpoints).values(name=_CHECKPOINT, position=head, updated_at=datetime.now(UTC))
    return started.on_conflict_do_nothing()


def _insert(columns: Sequence[str], rows: int) -> str:
    # One statement for many rows: each step of SQLite's driver gives up the interpreter, and waits to have it back.
    row = f"({', '.join('?' * len(columns))})"
    # A column that is not given is NULL in the row that is there, too: ``excluded`` has it so.
    return f"INSERT INTO {SHADOW} ({', '.join(columns)}) VALUES {', '.join([row] * rows)} {_newer()}"  # noqa: S608


def _keep(dialect: str) -> str:
    columns = ", ".join(COLUMN_NAMES)
    mark = "?" if dialect == "sqlite" else "$1"
    chosen = f"SELECT {columns} FROM {attempts.name} WHERE stream = {mark}"  # noqa: S608
    return f"INSERT INTO {SHADOW} ({columns}) {chosen} {_newer()}"


def _newer() -> str:
    sets = ", ".join(f"{name} = excluded.{name}" for name in COLUMN_NAMES if name != "stream")
    return f"ON CONFLICT (stream) DO UPDATE SET {sets} WHERE excluded.version > {SHADOW}.version"


_UPSERT = (
    f"INSERT INTO {SHADOW} ({', '.join(COLUMN_NAMES)}) "  # noqa: S608
    f"VALUES ({', '.join(f'${number}' for number in range(1, len(COLUMN_NAMES) + 1))}) {_newer()}"
)
