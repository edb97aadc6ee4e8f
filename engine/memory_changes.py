"""Changes of one user's memory: each decided on what is there, written at once, and kept in the history."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from msgspec.structs import replace

from engine import memory_sql as sql
from engine.contract import ToolContext
from engine.memory_limits import MemoryLimits
from engine.memory_past import MemoryPast
from engine.memory_store import MemoryFile, MemoryStore, Standing
from engine.text_editing import EditError
from engine.text_index import KeyRange
from engine.text_path import TextPath
from engine.tool_ledger import Planned, Sums, change, sums_of

__all__ = ("MemoryChanges", "check_room", "check_version")

R = TypeVar("R")


class MemoryChanges:
    """Makes changes within a row's limits.

    Every method raises EditError where a change cannot be made, Unavailable where others are faster every time, and
    LogUnavailable where the database cannot be read or written; then nothing is changed.
    """

    def __init__(self, context: ToolContext, limits: MemoryLimits) -> None:
        self._store = context.store
        self._limits = limits
        self.files = MemoryStore(context)
        self.past = MemoryPast(self.files)

    async def write(
        self, path: TextPath, edit: Callable[[MemoryFile | None], str], expected: int | None = None
    ) -> bool:
        """Make a file say what ``edit`` makes of it, and tell whether it is new.

        :param expected: the version it must have; 0: it must not be there; None: any
        """

        async def plan(token: str) -> Planned[bool]:
            standing = await self.files.standing(path, datetime.now(UTC))
            check_version(path, standing.file, expected)
            content = edit(standing.file)
            return await self._written(standing, token, path, content, standing.file is None)

        return await change(self._store, plan)

    async def restore(self, path: TextPath, version: int | None) -> int:
        """Make a file say what it said at a version, and return that.

        :param version: None: when it last said something; then it must be gone
        """

        async def plan(token: str) -> Planned[int]:
            standing = await self.files.standing(path, datetime.now(UTC))
            if version is None and standing.file is not None:
                raise EditError(f"{path} is there; say which version it is to go back to (see memory_history).")
            former = await self.past.former(path.text, version)
            if former is None:
                which = f"version {version} of {path}" if version else path.text
                raise EditError(f"Nothing is kept of {which}. See memory_history.")
            return await self._written(standing, token, path, former.content, former.version)

        return await change(self._store, plan)

    async def delete(self, path: TextPath, expected: int | None = None) -> bool:
        """Delete a file and tell whether there was one; its history stays for as long as it may be brought back."""

        async def plan(token: str) -> Planned[bool]:
            now = datetime.now(UTC)
            standing = await self.files.standing(path, now)
            file, before = standing.file, standing.sums
            if file is None:
                return Planned(False)
            check_version(path, file, expected)
            room = await self.past.room(standing, file.version + 1, 0, token)
            after = replace(
                before, entries=before.entries - 1, size=before.size - file.size, past=before.past - room.freed
            )
            marked = self.files.kept(sql.MARKED, path=path.text, now=now, token=token)
            gone = self.files.bound(sql.DELETED, path=path.text, token=token)
            return Planned(True, before, after, (marked, gone, *room.statements))

        return await change(self._store, plan)

    async def delete_below(self, directory: TextPath) -> int:
        """Delete what lies below a directory and return how many files that were."""
        keys = KeyRange.below(directory.text)

        async def plan(token: str) -> Planned[int]:
            before, extent = await sums_of(self._store), await self.files.extent(directory)
            if not extent.files:
                return Planned(0)
            after = replace(before, entries=before.entries - extent.files, size=before.size - extent.size)
            within = {"start": keys.start, "stop": keys.stop, "token": token}
            marked = self.files.kept(sql.MARKED_BELOW, now=datetime.now(UTC), **within)
            return Planned(extent.files, before, after, (marked, self.files.bound(sql.DELETED_BELOW, **within)))

        return await change(self._store, plan)

    async def _written(self, standing: Standing, token: str, path: TextPath, content: str, result: R) -> Planned[R]:
        file, before = standing.file, standing.sums
        if file is None:
            await self.files.check_free(path)
        elif content == file.content:
            return Planned(result)
        size = len(content.encode())
        after = replace(
            before, entries=before.entries + (file is None), size=before.size + size - (file.size if file else 0)
        )
        check_room(self._limits, after, size)
        version = max(standing.last_version, file.version if file else 0) + 1
        room = await self.past.room(standing, version, size, token)
        which = {"path": path.text, "token": token}
        statements = (
            self.files.bound(
                sql.INSERTED if file is None else sql.UPDATED,
                content=content,
                size=size,
                version=version,
                now=datetime.now(UTC),
                **which,
            ),
            self.files.kept(sql.KEPT, **which),
            *room.statements,
            *self.files.index.indexed(path.text, content, token),
        )
        return Planned(result, before, replace(after, past=before.past + size - room.freed), statements)


def check_room(limits: MemoryLimits, sums: Sums, size: int) -> None:
    """Refuse what does not fit. :raises EditError: if so, with what is allowed"""
    if size > limits.largest:
        raise EditError(f"File too long: it would have {size} bytes, at most {limits.largest} are kept.")
    if sums.entries > limits.files:
        raise EditError(f"Too many files: at most {limits.files} are kept. Delete some, or put several into one.")
    if sums.size > limits.space:
        raise EditError(
            f"Memory full: all files together would have {sums.size} bytes, at most {limits.space} are kept. "
            "Delete or shorten some."
        )


def check_version(path: TextPath, file: MemoryFile | None, expected: int | None) -> None:
    """Refuse to change another version than the caller has seen. :raises EditError: if it is another"""
    standing = 0 if file is None else file.version
    if expected is not None and standing != expected:
        now = f"is at version {standing}" if standing else "is not there"
        raise EditError(f"File changed since it was read: {path} {now}, expected_version is {expected}. Read it again.")
