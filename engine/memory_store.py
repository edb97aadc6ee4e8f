"""The files of one user's memory in the journal's database, as they are."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from engine import memory_sql as sql
from engine.contract import ToolContext
from engine.memory_limits import LISTED, RESTORABLE
from engine.text_editing import EditError
from engine.text_index import KeyRange, TextIndex
from engine.text_path import TextPath
from engine.text_search import Hit, TextSearch
from engine.tool_ledger import Sums
from engine.tool_sql import Sql

__all__ = ("Extent", "MemoryFile", "MemoryStore", "OldVersion", "Standing")


class MemoryFile(msgspec.Struct, frozen=True):
    """A file as it stands; ``size`` is in bytes of UTF-8."""

    content: str
    size: int
    version: int
    updated_at: datetime | None = None


class OldVersion(msgspec.Struct, frozen=True):
    """A version in the history, and its bytes."""

    path: str
    version: int
    size: int


class Standing(msgspec.Struct):
    """What a change of one file is decided on.

    :ivar past: the file's versions that are kept
    :ivar gone: versions of files that were deleted too long ago to come back
    """

    sums: Sums = Sums()
    file: MemoryFile | None = None
    past: list[OldVersion] = []
    gone: list[OldVersion] = []

    @property
    def last_version(self) -> int:
        """The last version the path ever had, 0 for none."""
        return max((each.version for each in self.past), default=0)


class Extent(msgspec.Struct, frozen=True):
    """How much lies below a directory.

    :ivar longest: characters of the longest path
    """

    files: int
    size: int
    longest: int


class MemoryStore:
    """Reads one user's files, and binds the statements that change them.

    Every method that reads raises LogUnavailable if the database cannot be read.
    """

    def __init__(self, context: ToolContext) -> None:
        self._store = context.store
        self._origin = {"conversation_id": context.conversation_id, "by_call": context.idempotency_key}
        self.index = TextIndex(context.store, "memory")

    async def read(self, path: TextPath) -> MemoryFile | None:
        """Return a file, or None."""
        rows = await self.rows(sql.READ, path=path.text)
        return MemoryFile(*rows[0]) if rows else None

    async def standing(self, path: TextPath, now: datetime) -> Standing:
        """Return what a change of a file is decided on, as it was at one moment."""
        standing = Standing()
        for kind, text, a, b, c, d, content in await self.rows(sql.STANDING, path=path.text, before=now - RESTORABLE):
            match kind:
                case "sums":
                    standing.sums = Sums(a, b, c, d, text)
                case "file":
                    standing.file = MemoryFile(content, b, a)
                case "past":
                    standing.past.append(OldVersion(text, a, b))
                case _:
                    standing.gone.append(OldVersion(text, a, b))
        return standing

    async def page(self, directory: TextPath, after: str) -> list[str]:
        """Return the paths below a directory after one, at most one more than a listing shows."""
        rows = await self.rows(sql.PAGE, after=after, limit=LISTED + 1, **_within(directory))
        return [row[0] for row in rows]

    async def extent(self, directory: TextPath) -> Extent:
        """Return how much lies below a directory."""
        rows = await self.rows(sql.EXTENT, **_within(directory))
        return Extent(*map(int, rows[0]))

    async def find(self, piece: str, limit: int, below: TextPath) -> list[Hit]:
        """Return the files that have a piece of text in path or content, in any case."""
        search = TextSearch(self._store, self.index, sql.SEARCHED)
        return await search.find(piece, limit, KeyRange.below(below.text))

    async def check_free(self, path: TextPath) -> int:
        """Refuse a path at which nothing can be made: it is there, or it, or what it lies in, is of the other kind.

        :return: the last version that a file of this path had, 0 for none
        :raises EditError: if so
        """
        keys, last = [path.as_file.text, *path.above], 0
        for kind, found, version in await self.rows(sql.TAKEN, path=path.text, keys=keys, **_within(path.as_directory)):
            if kind == "past":
                last = version
            elif found == path.as_file.text or (kind == "below" and path.is_directory):
                raise EditError(f"File already exists at {found}")
            elif kind == "below":
                raise EditError(f"{path.as_directory} is a directory; a file cannot have its name.")
            else:
                raise EditError(f"{found} is a file, so nothing can lie below it.")
        return last

    async def rows(self, statement: Sql, **values: Any) -> Any:
        """Return the rows of a statement."""
        return await self._store.read(statement.bind(self._store, **values))

    def bound(self, statement: Sql, **values: Any) -> Any:
        """Return a statement with its values."""
        return statement.bind(self._store, **values)

    def kept(self, statement: Sql, **values: Any) -> Any:
        """Return a statement that keeps versions in the history, with its values and those of the call."""
        return statement.bind(self._store, **values, **self._origin)


def _within(directory: TextPath) -> dict[str, str]:
    keys = KeyRange.below(directory.text)
    return {"start": keys.start, "stop": keys.stop}
