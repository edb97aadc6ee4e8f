"""A note in the journal's database: each change is one conditional statement, with its line of history beside it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
from sqlalchemy import Integer, Text, delete, exists, func, insert, literal, select, update
from sqlalchemy.sql import ColumnElement, Delete, Insert, Update

from engine.contract import ToolStore
from engine.schema import note_history, notes
from events.errors import Unavailable
from events.schema import Key, Utc

__all__ = ("VERSIONS", "Note", "NoteStore")

VERSIONS = 100
"""How many versions of a note its history keeps."""

_TRIES = 32
_COLUMNS = ("tenant", "tool_id", "title", "version", "content")


class Note(msgspec.Struct, frozen=True):
    """A note as it stands."""

    content: str
    version: int


class NoteStore:
    """One note of one user and tool row.

    :param by_call: the journal key of the call that changes it, for the history
    """

    def __init__(self, store: ToolStore, title: str, by_call: str) -> None:
        self._store = store
        self._title = title
        self._by_call = by_call

    async def read(self) -> Note | None:
        """Return the note, or None. :raises LogUnavailable: if the database cannot be read"""
        rows = await self._store.read(select(notes.c.content, notes.c.version).where(*self._here()))
        return Note(rows[0][0], rows[0][1]) if rows else None

    async def change(self, edit: Callable[[Note | None], str]) -> None:
        """Replace the note by what ``edit`` makes of it, and never by what it made of an older one.

        ``edit`` is asked again where somebody else changed the note meanwhile; what it raises is raised.

        :raises Unavailable: if others are faster every time
        :raises LogUnavailable: if the database cannot be read or written
        """
        for _ in range(_TRIES):
            note = await self.read()
            content = edit(note)
            statement = self._created(content) if note is None else self._updated(content, note.version)
            touched = await self._store.write(statement, self._remembered(), self._forgotten())
            if touched[0]:
                return
        raise Unavailable("the note is being changed all the time; try again later")

    async def delete(self) -> bool:
        """Delete the note and tell whether there was one; its history stays.

        :raises LogUnavailable: if the database cannot be written
        """
        touched = await self._store.write(delete(notes).where(*self._here()))
        return touched[0] > 0

    def _here(self) -> tuple[ColumnElement[bool], ...]:
        return (
            notes.c.tenant == self._store.tenant,
            notes.c.tool_id == self._store.tool_id,
            notes.c.title == self._title,
        )

    def _past(self) -> tuple[ColumnElement[bool], ...]:
        return (
            note_history.c.tenant == self._store.tenant,
            note_history.c.tool_id == self._store.tool_id,
            note_history.c.title == self._title,
        )

    def _created(self, content: str) -> Insert:
        """Insert unless somebody else did; versions go on where a deleted note's stopped."""
        now = datetime.now(UTC)
        last = select(func.coalesce(func.max(note_history.c.version), 0)).where(*self._past()).scalar_subquery()
        row = select(
            literal(self._store.tenant, Key()),
            literal(self._store.tool_id, Key()),
            literal(self._title, Key()),
            (last + 1).cast(Integer),
            literal(content, Text()),
            literal(now, Utc()),
            literal(now, Utc()),
        ).where(~exists().where(*self._here()))
        return insert(notes).from_select(
            [*_COLUMNS, "created_at", "updated_at"], row.suffix_with("ON CONFLICT DO NOTHING"), include_defaults=False
        )

    def _updated(self, content: str, version: int) -> Update:
        changed = {"content": content, "version": version + 1, "updated_at": datetime.now(UTC)}
        return update(notes).where(*self._here(), notes.c.version == version).values(changed)

    def _remembered(self) -> Insert:
        """Add the note as it now stands to the history, unless it is there: then this change was not the one."""
        known = exists().where(*self._past(), note_history.c.version == notes.c.version)
        row = select(*(notes.c[name] for name in _COLUMNS), notes.c.updated_at, literal(self._by_call, Text())).where(
            *self._here(), ~known
        )
        return insert(note_history).from_select([*_COLUMNS, "changed_at", "by_call"], row, include_defaults=False)

    def _forgotten(self) -> Delete:
        oldest = select(notes.c.version - VERSIONS).where(*self._here()).scalar_subquery()
        return delete(note_history).where(*self._past(), note_history.c.version <= oldest)
