"""What the files of a memory said before: one row per version, one without content where a file was deleted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Integer, Text, and_, delete, exists, func, insert, literal, select
from sqlalchemy.sql.expression import FromClause

from engine.contract import ToolContext
from engine.memory_limits import PAST, RESTORABLE, VERSIONS
from engine.memory_store import MemoryStore
from engine.text_index import keys_below
from engine.tool_schema import memory_files, memory_history
from events.schema import Key, Utc

__all__ = ("Forgetting", "Former", "MemoryPast", "PastVersion")

_AT_ONCE: Final = 100
_NAMES: Final = ("tenant", "tool_id", "path", "version", "content", "size", "changed_at", "conversation_id", "by_call")


class PastVersion(msgspec.Struct, frozen=True):
    """What the history says of a version; ``deleted``: the file went, and said nothing any more."""

    path: str
    version: int
    size: int
    deleted: bool
    changed_at: datetime
    conversation_id: str | None
    by_call: str | None


class Former(msgspec.Struct, frozen=True):
    """What a file said at a version."""

    version: int
    content: str


class Forgetting(msgspec.Struct, frozen=True):
    """Statements that take versions out of the history, and the bytes that they free."""

    statements: tuple[Any, ...] = ()
    freed: int = 0


class MemoryPast:
    """The history of one user's memory; changes are statements that the maker of a change takes along."""

    def __init__(self, context: ToolContext, files: MemoryStore) -> None:
        self._files = files
        self._context = context
        self._store = context.store

    async def versions(self, path: str) -> list[PastVersion]:
        """Return what is kept of one path, the newest first. :raises LogUnavailable: if it cannot be read"""
        rows = await self._listed(memory_history.c.path == path, memory_history.c.version.desc(), VERSIONS * 2)
        return [PastVersion(*row) for row in rows]

    async def deleted(self, directory: str, limit: int) -> list[PastVersion]:
        """Return which files below a directory are deleted, the last deleted first; see :meth:`versions`."""
        past = memory_history.c
        which = and_(past.content.is_(None), *keys_below(past.path, directory), ~self._files.has(past.path))
        rows = await self._listed(which, past.changed_at.desc(), limit)
        return [PastVersion(*row) for row in rows]

    async def former(self, path: str, version: int | None) -> Former | None:
        """Return what a path said at a version; None: when it last said something. See :meth:`versions`."""
        past = memory_history.c
        asked = select(past.version, past.content).where(*self.here(), past.path == path, past.content.is_not(None))
        if version is not None:
            asked = asked.where(past.version == version)
        rows = await self._store.read(asked.order_by(past.version.desc()).limit(1))
        return Former(rows[0][0], rows[0][1]) if rows else None

    async def last_version(self, path: str) -> int:
        """Return the last version that a path ever had, 0 for none; see :meth:`versions`."""
        past = memory_history.c
        rows = await self._store.read(
            select(func.coalesce(func.max(past.version), 0)).where(*self.here(), past.path == path)
        )
        return int(rows[0][0])

    async def forgetting(
        self, path: str, version: int, added: int, past: int, now: datetime, holds: ColumnElement[bool]
    ) -> Forgetting:
        """Return how to make room for a version that is about to be kept: what is too old, or too much, goes.

        :param added: its bytes
        :param past: the bytes of the whole history before
        """
        expired = await self._expired(now)
        dropped = {each[:2]: each[2] for each in (*await self._outdated(path, version - VERSIONS), *expired)}
        excess = past + added - sum(dropped.values()) - PAST
        if excess > 0:
            dropped.update({each[:2]: each[2] for each in await self._oldest(excess)})
        unfound = [self._files.unfound(gone, holds) for gone in {each[0] for each in expired}]
        return Forgetting((*(self._dropped(*key, holds) for key in dropped), *unfound), sum(dropped.values()))

    def kept(self, which: Sequence[ColumnElement[bool]], now: datetime, holds: ColumnElement[bool]) -> Any:
        """Return the statement that keeps what some files say now."""
        files = memory_files.c
        return self._remembered((files.path, files.version, files.content, files.size), [*which, holds], now)

    def marked(self, which: Sequence[ColumnElement[bool]], now: datetime, holds: ColumnElement[bool]) -> Any:
        """Return the statement that notes, before it is done, that some files go."""
        files = memory_files.c
        nothing = literal(None, Text()), literal(0, Integer())
        return self._remembered((files.path, files.version + 1, *nothing), [*which, holds], now)

    def _remembered(
        self, source: Sequence[ColumnElement[Any]], where: Sequence[ColumnElement[bool]], now: datetime
    ) -> Any:
        row = select(
            literal(self._store.tenant, Key()),
            literal(self._store.tool_id, Key()),
            *source,
            literal(now, Utc()),
            literal(self._context.conversation_id, Text()),
            literal(self._context.idempotency_key, Text()),
        ).where(*where)
        return insert(memory_history).from_select(list(_NAMES), row, include_defaults=False)

    def here(self, table: FromClause = memory_history) -> list[ColumnElement[bool]]:
        """Return the conditions: this user's and row's."""
        return [table.c.tenant == self._store.tenant, table.c.tool_id == self._store.tool_id]

    async def _listed(self, which: ColumnElement[bool], order: Any, limit: int) -> Sequence[Any]:
        past = memory_history.c
        columns = (past.path, past.version, past.size, past.content.is_(None))
        origin = (past.changed_at, past.conversation_id, past.by_call)
        return await self._store.read(select(*columns, *origin).where(*self.here(), which).order_by(order).limit(limit))

    async def _outdated(self, path: str, upto: int) -> Sequence[tuple[str, int, int]]:
        past = memory_history.c
        rows = await self._store.read(
            select(past.version, past.size).where(*self.here(), past.path == path, past.version <= upto)
        )
        return [(path, row[0], row[1]) for row in rows]

    async def _expired(self, now: datetime) -> list[tuple[str, int, int]]:
        """Return the rows of files that were deleted too long ago to come back."""
        past, older = memory_history.c, memory_history.alias("older")
        gone = select(past.path, past.version).where(
            *self.here(), past.content.is_(None), past.changed_at < now - RESTORABLE
        )
        last = gone.order_by(past.changed_at).limit(_AT_ONCE).subquery()
        rows = await self._store.read(
            select(older.c.path, older.c.version, older.c.size)
            .select_from(last)
            .join(older, and_(older.c.path == last.c.path, older.c.version <= last.c.version, *self.here(older)))
        )
        return [tuple(row) for row in rows]

    async def _oldest(self, excess: int) -> list[tuple[str, int, int]]:
        past = memory_history.c
        current = exists().where(*self._files.here(), memory_files.c.path == past.path)
        rows = await self._store.read(
            select(past.path, past.version, past.size)
            .where(*self.here(), past.size > 0, ~current.where(memory_files.c.version == past.version))
            .order_by(past.changed_at)
            .limit(_AT_ONCE)
        )
        taken: list[tuple[str, int, int]] = []
        for row in rows:
            if sum(size for _, _, size in taken) >= excess:
                break
            taken.append(tuple(row))
        return taken

    def _dropped(self, path: str, version: int, holds: ColumnElement[bool]) -> Any:
        past = memory_history.c
        return delete(memory_history).where(*self.here(), past.path == path, past.version == version, holds)
