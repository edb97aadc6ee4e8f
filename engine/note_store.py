"""Notes in the journal's database, one row per title, each change with its line of history beside it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from engine.contract import ToolStore
from engine.note_limits import LISTED, NOTES, VERSIONS
from engine.text_editing import EditError
from engine.text_index import TextIndex
from engine.text_search import Hit, SearchedTexts, TextSearch
from engine.tool_ledger import Planned, Sums, change
from engine.tool_sql import Sql

__all__ = ("ListedNote", "Note", "NoteStore", "NoteVersion")

_STANDING: Final = Sql(
    "SELECT 'sums' AS kind, token AS text, entries AS a, size AS b, past AS c, last AS d "
    "FROM tool_ledgers WHERE {here} "
    "UNION ALL SELECT 'note', content, version, 0, 0, 0 FROM notes WHERE {here} AND title = :title "
    "UNION ALL SELECT 'past', NULL, max(version), 0, 0, 0 "
    "FROM note_history WHERE {here} AND title = :title"
)
_READ: Final = Sql("SELECT content, version FROM notes WHERE {here} AND title = :title")
_PAGE: Final = Sql(
    "SELECT title, version, length(content) AS length, updated_at FROM notes WHERE {here} AND title > :after "
    "ORDER BY title LIMIT :limit",
    moments=("updated_at",),
)
_VERSIONS: Final = Sql(
    "SELECT version, length(content) AS length, changed_at, by_call "
    "FROM note_history WHERE {here} AND title = :title ORDER BY version DESC",
    moments=("changed_at",),
)
_FORMER: Final = Sql(
    "SELECT version, content FROM note_history WHERE {here} AND title = :title "
    "AND version >= :version AND version <= :upto ORDER BY version DESC LIMIT 1"
)
_SEARCHED: Final = SearchedTexts("notes", "title")

_INSERTED: Final = Sql(
    "INSERT INTO notes (tenant, tool_id, title, content, version, created_at, updated_at) "
    "SELECT :tenant, :tool_id, :title, :content, :version, :now, :now WHERE {holds}"
)
_UPDATED: Final = Sql(
    "UPDATE notes SET content = :content, version = :version, updated_at = :now "
    "WHERE {here} AND title = :title AND {holds}"
)
_DELETED: Final = Sql("DELETE FROM notes WHERE {here} AND title = :title AND {holds}")
_KEPT: Final = Sql(
    "INSERT INTO note_history (tenant, tool_id, title, version, content, changed_at, by_call) "
    "SELECT tenant, tool_id, title, version, content, updated_at, :by_call FROM notes "
    "WHERE {here} AND title = :title AND {holds}"
)
_TRIMMED: Final = Sql("DELETE FROM note_history WHERE {here} AND title = :title AND version <= :upto AND {holds}")


class Note(msgspec.Struct, frozen=True):
    """A note as it stands."""

    content: str
    version: int


class ListedNote(msgspec.Struct, frozen=True):
    """What a listing says of a note; ``length`` is in characters."""

    title: str
    version: int
    length: int
    updated_at: datetime


class NoteVersion(msgspec.Struct, frozen=True):
    """What the history says of one version of a note."""

    version: int
    length: int
    changed_at: datetime
    by_call: str | None


class _Standing(msgspec.Struct):
    """What is there when a change is decided on."""

    sums: Sums = Sums()
    note: Note | None = None
    last_version: int = 0


class NoteStore:
    """The notes of one user and tool row.

    :param by_call: the journal key of the call that changes them, for the history
    """

    def __init__(self, store: ToolStore, by_call: str) -> None:
        self._store = store
        self._by_call = by_call
        self._index = TextIndex(store, "notes")

    async def read(self, title: str) -> Note | None:
        """Return a note, or None. :raises LogUnavailable: if the database cannot be read"""
        rows = await self._store.read(_READ.bind(self._store, title=title))
        return Note(rows[0][0], rows[0][1]) if rows else None

    async def page(self, after: str) -> list[ListedNote]:
        """Return the notes after a title, at most one more than a listing shows; see :meth:`read`."""
        rows = await self._store.read(_PAGE.bind(self._store, after=after, limit=LISTED + 1))
        return [ListedNote(*row) for row in rows]

    async def find(self, piece: str, limit: int) -> list[Hit]:
        """Return the notes that have a piece of text in title or content, in any case; see :meth:`read`."""
        return await TextSearch(self._store, self._index, _SEARCHED).find(piece, limit)

    async def versions(self, title: str) -> list[NoteVersion]:
        """Return the versions that are kept, the newest first; see :meth:`read`."""
        rows = await self._store.read(_VERSIONS.bind(self._store, title=title))
        return [NoteVersion(*row) for row in rows]

    async def change(self, title: str, edit: Callable[[Note | None], str], expected: int | None = None) -> None:
        """Replace a note by what ``edit`` makes of it, and never by what it made of an older one.

        ``edit`` is asked again where somebody else changed any note meanwhile; what it raises is raised.

        :param expected: the version it must have; 0: there must be none; None: any
        :raises EditError: if it has another version, or there are too many notes
        :raises Unavailable: if others are faster every time
        :raises LogUnavailable: if the database cannot be read or written
        """

        async def plan(token: str) -> Planned[None]:
            standing = await self._standing(title)
            _check(standing.note, expected)
            return self._written(standing, token, title, edit(standing.note), None)

        await change(self._store, plan)

    async def restore(self, title: str, version: int | None, expected: int | None = None) -> int:
        """Make a note say what it said at a version and return that; None: before its last change, or its deletion.

        :raises EditError: if that version is not kept; otherwise see :meth:`change`
        """

        async def plan(token: str) -> Planned[int]:
            standing = await self._standing(title)
            _check(standing.note, expected)
            found, content = await self._former(title, standing, version)
            return self._written(standing, token, title, content, found)

        return await change(self._store, plan)

    async def delete(self, title: str, expected: int | None = None) -> bool:
        """Delete a note and tell whether there was one; its history stays. See :meth:`change`."""

        async def plan(token: str) -> Planned[bool]:
            standing = await self._standing(title)
            if standing.note is None:
                return Planned(False)
            _check(standing.note, expected)
            after = replace(standing.sums, entries=standing.sums.entries - 1)
            gone = _DELETED.bind(self._store, title=title, token=token)
            return Planned(True, standing.sums, after, (gone, self._index.forgotten(title, token)))

        return await change(self._store, plan)

    async def _standing(self, title: str) -> _Standing:
        standing = _Standing()
        for kind, text, *numbers in await self._store.read(_STANDING.bind(self._store, title=title)):
            if kind == "sums":
                entries, size, past, last = numbers
                standing.sums = Sums(entries, size, past, last, text)
            elif kind == "note":
                standing.note = Note(text, numbers[0])
            else:
                standing.last_version = numbers[0] or 0
        return standing

    async def _former(self, title: str, standing: _Standing, version: int | None) -> tuple[int, str]:
        note = standing.note
        upto = standing.last_version if note is None else note.version - 1
        bounds = {"version": version or 0, "upto": version or upto}
        rows = await self._store.read(_FORMER.bind(self._store, title=title, **bounds))
        if rows:
            return rows[0][0], rows[0][1]
        if version is not None:
            raise EditError(f"Version {version} of the note is not kept. See note_history.")
        raise EditError("No note found." if note is None else "Nothing to undo: this is the note's first version.")

    def _written(self, standing: _Standing, token: str, title: str, content: str, result: Any) -> Planned[Any]:
        note, after = standing.note, standing.sums
        if note is not None and content == note.content:
            return Planned(result)
        if note is None and after.entries >= NOTES:
            raise EditError(f"Too many notes: at most {NOTES} are kept. Delete some.")
        after = replace(after, entries=after.entries + (note is None))
        version = max(standing.last_version, note.version if note else 0) + 1
        which = {"title": title, "token": token}
        statements = (
            (_INSERTED if note is None else _UPDATED).bind(
                self._store, content=content, version=version, now=datetime.now(UTC), **which
            ),
            _KEPT.bind(self._store, by_call=self._by_call, **which),
            *([_TRIMMED.bind(self._store, upto=version - VERSIONS, **which)] if version > VERSIONS else []),
            *self._index.indexed(title, content, token),
        )
        return Planned(result, standing.sums, after, statements)


def _check(note: Note | None, expected: int | None) -> None:
    standing = 0 if note is None else note.version
    if expected is not None and standing != expected:
        now = f"is at version {standing}" if standing else "is not there"
        raise EditError(f"Note changed since it was read: it {now}, expected_version is {expected}. Read it again.")
