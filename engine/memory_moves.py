"""Renaming in one user's memory, and bringing a whole directory back."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace
from sqlalchemy import ColumnElement, case, func, insert, literal, select

from engine.contract import ToolContext
from engine.memory_changes import MemoryChanges, check_version
from engine.memory_limits import LONGEST_PATH, MemoryLimits
from engine.memory_store import COLUMNS
from engine.text_editing import EditError
from engine.text_index import keys_below
from engine.text_path import TextPath
from engine.tool_ledger import Planned, Sums, change
from engine.tool_schema import memory_files, memory_history
from events.schema import Key, Utc

__all__ = ("MemoryMoves",)

Condition = ColumnElement[bool]


class MemoryMoves:
    """Moves files within a row's limits; raises as ``MemoryChanges`` does."""

    def __init__(self, context: ToolContext, limits: MemoryLimits) -> None:
        self._store = context.store
        self._changes = MemoryChanges(context, limits)
        self._files = self._changes.files
        self._past = self._changes.past

    async def rename(self, old: TextPath, new: TextPath, expected: int | None = None) -> None:
        """Give a file another path, at which nothing may be."""

        async def plan(before: Sums, holds: Condition) -> Planned[None]:
            file = await self._files.read(old)
            if file is None:
                raise EditError(f"File not found: {old}")
            check_version(old, file, expected)
            await self._files.check_free(new)
            now = datetime.now(UTC)
            version = max(file.version, await self._past.last_version(new.text)) + 1
            which, moved = self._files.here(old), self._files.here(new)
            renamed = self._files.updated(which, holds, path=new.text, version=version, updated_at=now)
            statements = (self._past.marked(which, now, holds), renamed, self._past.kept(moved, now, holds))
            indexed = self._files.index.indexed(new.text, file.content, holds)
            return Planned(None, replace(before, past=before.past + file.size), (*statements, *indexed))

        await change(self._store, plan)

    async def rename_below(self, old: TextPath, new: TextPath) -> int:
        """Give a directory another path, at and below which nothing may be; return how many files that moved."""
        if new.text.startswith(old.text):
            raise EditError(f"Cannot rename {old} to {new}, which lies within it.")

        async def plan(before: Sums, holds: Condition) -> Planned[int]:
            extent = await self._files.extent(old)
            if not extent.files:
                raise EditError(f"Directory not found: {old}")
            await self._files.check_free(new)
            longest = extent.longest - len(old.text) + len(new.text)
            if longest > LONGEST_PATH:
                raise EditError(f"Invalid path: a path would have {longest} characters, at most {LONGEST_PATH}.")
            now, which = datetime.now(UTC), self._files.below(old)
            path = literal(new.text, Key()) + func.substr(memory_files.c.path, len(old.text) + 1)
            changed = {"path": path, "version": self._next_version(path), "updated_at": now}
            statements = (
                self._past.marked(which, now, holds),
                self._files.updated(which, holds, **changed),
                self._past.kept(self._files.below(new), now, holds),
                *self._files.index.moved(old.text, new.text, self._files.has, holds),
            )
            return Planned(extent.files, replace(before, past=before.past + extent.size), statements)

        return await change(self._store, plan)

    async def restore_below(self, directory: TextPath) -> int:
        """Bring back what was last deleted at once below a directory, in which nothing may be; return how many."""

        async def plan(before: Sums, holds: Condition) -> Planned[int]:
            deleted = await self._past.deleted(directory.text, 1)
            if not deleted:
                raise EditError(f"Nothing is kept of {directory}. See memory_history.")
            if not directory.is_root:
                await self._files.check_free(directory)
            elif before.entries:
                raise EditError("The memory is not empty; restore a directory or a file of it.")
            last = deleted[0]
            gone, former = memory_history, memory_history.alias("former")
            which = [
                *self._past.here(),
                *keys_below(gone.c.path, directory.text),
                gone.c.content.is_(None),
                gone.c.changed_at == last.changed_at,
                *self._past.here(former),
                former.c.path == gone.c.path,
                former.c.version == gone.c.version - 1,
                former.c.content.is_not(None),
            ]
            counted = select(func.count(), func.coalesce(func.sum(former.c.size), 0)).where(*which)
            files, size = map(int, (await self._store.read(counted))[0])
            sums = replace(before, entries=before.entries + files, size=before.size + size, past=before.past + size)
            self._changes.check_room(sums, 0)
            now = datetime.now(UTC)
            columns = (gone.c.tenant, gone.c.tool_id, gone.c.path, former.c.content, former.c.size, gone.c.version + 1)
            row = select(*columns, literal(now, Utc()), literal(now, Utc())).where(*which, holds)
            made = insert(memory_files).from_select(list(COLUMNS), row, include_defaults=False)
            return Planned(files, sums, (made, self._past.kept(self._files.below(directory), now, holds)))

        return await change(self._store, plan)

    def _next_version(self, path: ColumnElement[str]) -> ColumnElement[int]:
        """Return the version of a file at a path that others may have had before it."""
        past = memory_history.c
        known = func.coalesce(
            select(func.max(past.version)).where(*self._past.here(), past.path == path).scalar_subquery(), 0
        )
        version = memory_files.c.version
        return case((known > version, known), else_=version) + 1
