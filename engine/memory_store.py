"""The files of one user's memory in the journal's database, as they are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import Integer, Text, and_, delete, exists, func, insert, literal, select, update
from sqlalchemy.sql import ColumnElement

from engine.contract import ToolStore
from engine.memory_limits import LISTED
from engine.text_editing import EditError
from engine.text_index import TextIndex, keys_below
from engine.text_path import TextPath
from engine.text_search import Hit, TextSearch
from engine.tool_schema import memory_files, text_index
from events.schema import Key, Utc

__all__ = ("COLUMNS", "Extent", "MemoryFile", "MemoryStore")

COLUMNS: Final = ("tenant", "tool_id", "path", "content", "size", "version", "created_at", "updated_at")


class MemoryFile(msgspec.Struct, frozen=True):
    """A file as it stands; ``size`` is in bytes of UTF-8."""

    content: str
    size: int
    version: int
    updated_at: datetime


class Extent(msgspec.Struct, frozen=True):
    """How much lies below a directory."""

    files: int
    size: int
    longest: int


class MemoryStore:
    """Reads one user's files, and says how they are written."""

    def __init__(self, store: ToolStore) -> None:
        self._store = store
        self.index = TextIndex(store, "memory")
        self._search = TextSearch(store, self.index, memory_files.c.path, memory_files.c.content, self.here())

    async def read(self, path: TextPath) -> MemoryFile | None:
        """Return a file, or None. :raises LogUnavailable: if the database cannot be read"""
        files = memory_files.c
        rows = await self._store.read(
            select(files.content, files.size, files.version, files.updated_at).where(*self.here(path))
        )
        return MemoryFile(*rows[0]) if rows else None

    async def page(self, directory: TextPath, after: str) -> list[str]:
        """Return the paths below a directory after one, at most one more than a listing shows; see :meth:`read`."""
        path = memory_files.c.path
        rows = await self._store.read(
            select(path).where(*self.below(directory), path > after).order_by(path).limit(LISTED + 1)
        )
        return [row[0] for row in rows]

    async def extent(self, directory: TextPath) -> Extent:
        """Return how much lies below a directory; see :meth:`read`."""
        files = memory_files.c
        size = func.coalesce(func.sum(files.size), 0)
        longest = func.coalesce(func.max(func.length(files.path)), 0)
        rows = await self._store.read(select(func.count(), size, longest).where(*self.below(directory)))
        return Extent(*map(int, rows[0]))

    async def find(self, piece: str, limit: int, below: TextPath) -> list[Hit]:
        """Return the files that have a piece of text in path or content, in any case; see :meth:`read`."""
        return await self._search.find(piece, limit, "" if below.is_root else below.text)

    async def check_free(self, path: TextPath) -> None:
        """Refuse a path at which nothing can be made: it is there, or it, or what it lies in, is of the other kind.

        :raises EditError: if so
        :raises LogUnavailable: if the database cannot be read
        """
        files, directory = memory_files.c, path.as_directory
        taken = [path.as_file.text, *path.above]
        rows = await self._store.read(
            select(files.path)
            .where(*self.here(), files.path.in_(taken))
            .union_all(
                select(files.path).where(*self.below(directory)).order_by(files.path).limit(1).subquery().select()
            )
        )
        for (found,) in rows:
            if found == path.as_file.text or (path.is_directory and found not in taken):
                raise EditError(f"File already exists at {found}")
            if found not in taken:
                raise EditError(f"{directory} is a directory; a file cannot have its name.")
            raise EditError(f"{found} is a file, so nothing can lie below it.")

    def inserted(
        self, path: TextPath, content: str, size: int, version: int, now: datetime, holds: ColumnElement[bool]
    ) -> Any:
        """Return the statement that makes a file."""
        row = select(
            *(literal(key, Key()) for key in (self._store.tenant, self._store.tool_id, path.text)),
            literal(content, Text()),
            *(literal(number, Integer()) for number in (size, version)),
            *(literal(moment, Utc()) for moment in (now, now)),
        ).where(holds)
        return insert(memory_files).from_select(list(COLUMNS), row, include_defaults=False)

    def updated(self, which: Sequence[ColumnElement[bool]], holds: ColumnElement[bool], **changed: Any) -> Any:
        """Return the statement that changes files."""
        return update(memory_files).where(*which, holds).values(changed)

    def deleted(self, which: Sequence[ColumnElement[bool]], holds: ColumnElement[bool]) -> Any:
        """Return the statement that deletes files."""
        return delete(memory_files).where(*which, holds)

    def unfound(self, path: str, holds: ColumnElement[bool]) -> Any:
        """Return the statement after which a search does not look at a path any more, unless a file is there."""
        return self.index.forgotten(and_(text_index.c.key == path, ~self.has(text_index.c.key)), holds)

    def here(self, *paths: TextPath) -> list[ColumnElement[bool]]:
        """Return the conditions: this user's and row's, and of this path."""
        owner = [memory_files.c.tenant == self._store.tenant, memory_files.c.tool_id == self._store.tool_id]
        return owner + [memory_files.c.path == path.text for path in paths]

    def has(self, path: ColumnElement[str]) -> ColumnElement[bool]:
        """Return the condition: there is a file at a path that another table has."""
        return exists().where(*self.here(), memory_files.c.path == path)

    def below(self, directory: TextPath) -> list[ColumnElement[bool]]:
        """Return the conditions: this user's and row's, and below a directory."""
        return [*self.here(), *keys_below(memory_files.c.path, "" if directory.is_root else directory.text)]
