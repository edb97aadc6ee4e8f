"""Notes in the journal's database, one row per title, each change with its line of history beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Integer, Text, delete, func, insert, literal, select, update
from sqlalchemy.sql import ColumnElement

from engine.contract import ToolStore
from engine.note_limits import LISTED, NOTES, VERSIONS
from engine.schema import note_history, notes
from engine.text_editing import EditError
from engine.text_index import TextIndex
from engine.text_search import Hit, TextSearch
from engine.tool_ledger import Planned, Sums, change
from events.schema import Key, Utc

__all__ = ("ListedNote", "Note", "NoteStore", "NoteVersion")


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


class NoteStore:
    """The notes of one user and tool row.

    :param by_call: the journal key of the call that changes them, for the history
    """

    def __init__(self, store: ToolStore, by_call: str) -> None:
        self._store = store
        self._by_call = by_call
        self._index = TextIndex(store, "notes")
        self._search = TextSearch(store, self._index, notes.c.title, notes.c.content, self._here())

    async def read(self, title: str) -> Note | None:
        """Return a note, or None. :raises LogUnavailable: if the database cannot be read"""
        rows = await self._store.read(select(notes.c.content, notes.c.version).where(*self._here(title)))
        return Note(rows[0][0], rows[0][1]) if rows else None

    async def page(self, after: str) -> list[ListedNote]:
        """Return the notes after a title, at most one more than a listing shows; see :meth:`read`."""
        columns = notes.c.title, notes.c.version, func.length(notes.c.content), notes.c.updated_at
        rows = await self._store.read(
            select(*columns).where(*self._here(), notes.c.title > after).order_by(notes.c.title).limit(LISTED + 1)
        )
        return [ListedNote(*row) for row in rows]

    async def find(self, piece: str, limit: int) -> list[Hit]:
        """Return the notes that have a piece of text in title or content, in any case; see :meth:`read`."""
        return await self._search.find(piece, limit)

    async def versions(self, title: str) -> list[NoteVersion]:
        """Return the versions that are kept, the newest first; see :meth:`read`."""
        past = note_history.c
        columns = past.version, func.length(past.content), past.changed_at, past.by_call
        rows = await self._store.read(select(*columns).where(*self._past(title)).order_by(past.version.desc()))
        return [NoteVersion(*row) for row in rows]

    async def change(self, title: str, edit: Callable[[Note | None], str], expected: int | None = None) -> None:
        """Replace a note by what ``edit`` makes of it, and never by what it made of an older one.

        ``edit`` is asked again where somebody else changed any note meanwhile; what it raises is raised.

        :param expected: the version it must have; 0: there must be none; None: any
        :raises EditError: if it has another version, or there are too many notes
        :raises Unavailable: if others are faster every time
        :raises LogUnavailable: if the database cannot be read or written
        """

        async def plan(before: Sums, holds: ColumnElement[bool]) -> Planned[None]:
            note = await self.read(title)
            _check(note, expected)
            return await self._written(before, holds, title, note, edit(note))

        await change(self._store, plan)

    async def restore(self, title: str, version: int | None, expected: int | None = None) -> int:
        """Make a note say what it said at a version and return that; None: before its last change, or its deletion.

        :raises EditError: if that version is not kept; otherwise see :meth:`change`
        """

        async def plan(before: Sums, holds: ColumnElement[bool]) -> Planned[int]:
            note = await self.read(title)
            _check(note, expected)
            found, content = await self._former(title, note, version)
            planned = await self._written(before, holds, title, note, content)
            return Planned(found, planned.sums, planned.statements)

        return await change(self._store, plan)

    async def delete(self, title: str, expected: int | None = None) -> bool:
        """Delete a note and tell whether there was one; its history stays. See :meth:`change`."""

        async def plan(before: Sums, holds: ColumnElement[bool]) -> Planned[bool]:
            note = await self.read(title)
            if note is None:
                return Planned(False)
            _check(note, expected)
            gone = delete(notes).where(*self._here(title), holds)
            unfound = self._index.forgotten(self._index.of(title), holds)
            return Planned(True, replace(before, entries=before.entries - 1), (gone, unfound))

        return await change(self._store, plan)

    async def _former(self, title: str, note: Note | None, version: int | None) -> tuple[int, str]:
        past = note_history.c
        asked = select(past.version, past.content).where(*self._past(title))
        if version is not None:
            asked = asked.where(past.version == version)
        elif note is not None:
            asked = asked.where(past.version < note.version)
        rows = await self._store.read(asked.order_by(past.version.desc()).limit(1))
        if rows:
            return rows[0][0], rows[0][1]
        if version is not None:
            raise EditError(f"Version {version} of the note is not kept. See note_history.")
        raise EditError("No note found." if note is None else "Nothing to undo: this is the note's first version.")

    async def _written(
        self, before: Sums, holds: ColumnElement[bool], title: str, note: Note | None, content: str
    ) -> Planned[None]:
        if note is not None and content == note.content:
            return Planned(None)
        now = datetime.now(UTC)
        if note is None:
            if before.entries >= NOTES:
                raise EditError(f"Too many notes: at most {NOTES} are kept. Delete some.")
            before, version = replace(before, entries=before.entries + 1), await self._last(title) + 1
            written: Any = self._inserted(title, version, content, now, holds)
        else:
            version = note.version + 1
            changed = {"content": content, "version": version, "updated_at": now}
            written = update(notes).where(*self._here(title), holds).values(changed)
        forgotten = delete(note_history).where(*self._past(title), note_history.c.version <= version - VERSIONS, holds)
        remembered = self._remembered(title, version, content, now, holds)
        return Planned(None, before, (written, remembered, forgotten, *self._index.indexed(title, content, holds)))

    async def _last(self, title: str) -> int:
        rows = await self._store.read(
            select(func.coalesce(func.max(note_history.c.version), 0)).where(*self._past(title))
        )
        return int(rows[0][0])

    def _here(self, *titles: str) -> list[ColumnElement[bool]]:
        owner = [notes.c.tenant == self._store.tenant, notes.c.tool_id == self._store.tool_id]
        return owner + [notes.c.title == title for title in titles]

    def _past(self, title: str) -> list[ColumnElement[bool]]:
        past = note_history.c
        return [past.tenant == self._store.tenant, past.tool_id == self._store.tool_id, past.title == title]

    def _columns(self, title: str, version: int, content: str) -> Sequence[ColumnElement[Any]]:
        keys = (literal(key, Key()) for key in (self._store.tenant, self._store.tool_id, title))
        return *keys, literal(version, Integer()), literal(content, Text())

    def _inserted(self, title: str, version: int, content: str, now: datetime, holds: ColumnElement[bool]) -> Any:
        times = literal(now, Utc()), literal(now, Utc())
        row = select(*self._columns(title, version, content), *times).where(holds)
        names = ["tenant", "tool_id", "title", "version", "content", "created_at", "updated_at"]
        return insert(notes).from_select(names, row, include_defaults=False)

    def _remembered(self, title: str, version: int, content: str, now: datetime, holds: ColumnElement[bool]) -> Any:
        change_of = literal(now, Utc()), literal(self._by_call, Text())
        row = select(*self._columns(title, version, content), *change_of).where(holds)
        names = ["tenant", "tool_id", "title", "version", "content", "changed_at", "by_call"]
        return insert(note_history).from_select(names, row, include_defaults=False)


def _check(note: Note | None, expected: int | None) -> None:
    standing = 0 if note is None else note.version
    if expected is not None and standing != expected:
        now = f"is at version {standing}" if standing else "is not there"
        raise EditError(f"Note changed since it was read: it {now}, expected_version is {expected}. Read it again.")
