"""Renaming in one user's memory, and bringing a whole directory back."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from engine import memory_sql as sql
from engine.contract import ToolContext
from engine.memory_changes import check_room, check_version
from engine.memory_limits import LONGEST_PATH, MemoryLimits
from engine.memory_past import MemoryPast
from engine.memory_store import MemoryStore
from engine.text_editing import EditError
from engine.text_index import KeyRange, signature
from engine.text_path import TextPath
from engine.tool_ledger import Planned, change, sums_of

__all__ = ("MemoryMoves",)


class MemoryMoves:
    """Moves files within a row's limits; raises as ``MemoryChanges`` does."""

    def __init__(self, context: ToolContext, limits: MemoryLimits) -> None:
        self._store = context.store
        self._limits = limits
        self._files = MemoryStore(context)
        self._past = MemoryPast(self._files)

    async def rename(self, old: TextPath, new: TextPath, expected: int | None = None) -> bool:
        """Give a file another path, at which nothing may be, and tell whether there was one."""

        async def plan(token: str) -> Planned[bool]:
            now = datetime.now(UTC)
            standing = await self._files.standing(old, now)
            file, before = standing.file, standing.sums
            if file is None:
                return Planned(False)
            check_version(old, file, expected)
            if new.is_directory:
                raise EditError("Cannot create a file at directory path")
            version = max(file.version, await self._files.check_free(new)) + 1
            room = await self._past.room(standing, file.version + 1, file.size, token)
            moved = {"path": old.text, "new_path": new.text, "version": version}
            statements = (
                self._files.kept(sql.MARKED, path=old.text, now=now, token=token),
                self._files.bound(sql.MOVED, now=now, token=token, **moved),
                self._files.kept(sql.KEPT, path=new.text, token=token),
                *room.statements,
                *self._files.index.indexed(new.text, file.content, token),
            )
            return Planned(True, before, replace(before, past=before.past + file.size - room.freed), statements)

        return await change(self._store, plan)

    async def rename_below(self, old: TextPath, new: TextPath) -> int:
        """Give a directory another path, at and below which nothing may be; return how many files that moved."""
        if new.text.startswith(old.text):
            raise EditError(f"Cannot rename {old} to {new}, which lies within it.")
        left, right = KeyRange.below(old.text), KeyRange.below(new.text)

        async def plan(token: str) -> Planned[int]:
            before, extent = await sums_of(self._store), await self._files.extent(old)
            if not extent.files:
                raise EditError(f"Directory not found: {old}")
            await self._files.check_free(new)
            longest = extent.longest - len(old.text) + len(new.text)
            if longest > LONGEST_PATH:
                raise EditError(f"Invalid path: a path would have {longest} characters, at most {LONGEST_PATH}.")
            now, space = datetime.now(UTC), self._files.index.space
            there = {"start": left.start, "stop": left.stop, "token": token}
            here = {"start": right.start, "stop": right.stop, "token": token}
            name = signature(new.text.casefold().encode())
            renamed = {"new_start": new.text, "offset": len(old.text) + 1, **there}
            statements = (
                self._files.kept(sql.MARKED_BELOW, now=now, **there),
                self._files.bound(sql.MOVED_BELOW, now=now, **renamed),
                self._files.kept(sql.KEPT_BELOW, **here),
                self._files.bound(sql.UNFOUND_BELOW, space=space, **here),
                self._files.bound(sql.REFOUND_BELOW, space=space, **renamed, **name),
            )
            return Planned(extent.files, before, replace(before, past=before.past + extent.size), statements)

        return await change(self._store, plan)

    async def restore_below(self, directory: TextPath) -> int:
        """Bring back what last went at once from below a directory, in which nothing may be; return how many."""
        keys = KeyRange.below(directory.text)

        async def plan(token: str) -> Planned[int]:
            before = await sums_of(self._store)
            gone = await self._past.gone(directory.text, 1)
            if not gone:
                raise EditError(f"Nothing is kept of {directory}. See memory_history.")
            if not directory.is_root:
                await self._files.check_free(directory)
            elif before.entries:
                raise EditError("The memory is not empty; restore a directory or a file of it.")
            which = {"start": keys.start, "stop": keys.stop, "changed_at": gone[0].changed_at}
            files, size = map(int, (await self._files.rows(sql.RESTORABLE_BELOW, **which))[0])
            after = replace(before, entries=before.entries + files, size=before.size + size, past=before.past + size)
            check_room(self._limits, after, 0)
            statements = (
                self._files.bound(sql.RESTORED_BELOW, now=datetime.now(UTC), token=token, **which),
                self._files.kept(sql.KEPT_BELOW, start=keys.start, stop=keys.stop, token=token),
            )
            return Planned(files, before, after, statements)

        return await change(self._store, plan)
