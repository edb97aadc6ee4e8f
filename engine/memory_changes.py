"""Changes of one user's memory: each decided on what is there, written at once, and kept in the history."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from msgspec.structs import replace
from sqlalchemy.sql import ColumnElement

from engine.contract import ToolContext
from engine.memory_limits import MemoryLimits
from engine.memory_past import MemoryPast
from engine.memory_store import MemoryFile, MemoryStore
from engine.text_editing import EditError
from engine.text_path import TextPath
from engine.tool_ledger import Planned, Sums, change

__all__ = ("MemoryChanges",)

Condition = ColumnElement[bool]


class MemoryChanges:
    """Makes changes within a row's limits.

    Every method raises EditError where a change cannot be made, Unavailable where others are faster every time, and
    LogUnavailable where the database cannot be read or written; then nothing is changed.
    """

    def __init__(self, context: ToolContext, limits: MemoryLimits) -> None:
        self._store = context.store
        self._limits = limits
        self.files = MemoryStore(context.store)
        self.past = MemoryPast(context, self.files)

    async def write(
        self, path: TextPath, edit: Callable[[MemoryFile | None], str], expected: int | None = None
    ) -> bool:
        """Make a file say what ``edit`` makes of it, and tell whether it is new.

        :param expected: the version it must have; 0: it must not be there; None: any
        """

        async def plan(before: Sums, holds: Condition) -> Planned[bool]:
            file = await self.files.read(path)
            check_version(path, file, expected)
            content = edit(file)
            if file is None:
                await self.files.check_free(path)
            elif content == file.content:
                return Planned(False)
            return await self._written(before, holds, path, file, content)

        return await change(self._store, plan)

    async def delete(self, path: TextPath, expected: int | None = None) -> None:
        """Delete a file; its history stays for as long as it may be brought back."""

        async def plan(before: Sums, holds: Condition) -> Planned[None]:
            file = await self.files.read(path)
            if file is None:
                raise EditError(f"File not found: {path}")
            check_version(path, file, expected)
            now = datetime.now(UTC)
            forgetting = await self.past.forgetting(path.text, file.version + 1, 0, before.past, now, holds)
            sums = replace(
                before,
                entries=before.entries - 1,
                size=before.size - file.size,
                past=before.past - forgetting.freed,
            )
            which = self.files.here(path)
            marked, gone = self.past.marked(which, now, holds), self.files.deleted(which, holds)
            return Planned(None, sums, (marked, gone, *forgetting.statements))

        await change(self._store, plan)

    async def delete_below(self, directory: TextPath) -> int:
        """Delete what lies below a directory and return how many files that were."""

        async def plan(before: Sums, holds: Condition) -> Planned[int]:
            extent = await self.files.extent(directory)
            if not extent.files:
                return Planned(0)
            which, now = self.files.below(directory), datetime.now(UTC)
            sums = replace(before, entries=before.entries - extent.files, size=before.size - extent.size)
            marked = self.past.marked(which, now, holds)
            return Planned(extent.files, sums, (marked, self.files.deleted(which, holds)))

        return await change(self._store, plan)

    async def restore(self, path: TextPath, version: int | None) -> int:
        """Make a file say what it said at a version, by default when it last said something; return that version."""

        async def plan(before: Sums, holds: Condition) -> Planned[int]:
            file = await self.files.read(path)
            if file is None:
                await self.files.check_free(path)
            former = await self.past.former(path.text, version)
            if former is None:
                which = f"version {version} of {path}" if version else path.text
                raise EditError(f"Nothing is kept of {which}. See memory_history.")
            if file is not None and former.content == file.content:
                return Planned(former.version)
            planned = await self._written(before, holds, path, file, former.content)
            return Planned(former.version, planned.sums, planned.statements)

        return await change(self._store, plan)

    async def _written(
        self, before: Sums, holds: Condition, path: TextPath, file: MemoryFile | None, content: str
    ) -> Planned[bool]:
        size, now = len(content.encode()), datetime.now(UTC)
        sums = replace(
            before,
            entries=before.entries + (file is None),
            size=before.size + size - (file.size if file else 0),
        )
        self.check_room(sums, size)
        version = (file.version if file else await self.past.last_version(path.text)) + 1
        if file is None:
            written = self.files.inserted(path, content, size, version, now, holds)
        else:
            written = self.files.updated(
                self.files.here(path), holds, content=content, size=size, version=version, updated_at=now
            )
        forgetting = await self.past.forgetting(path.text, version, size, before.past, now, holds)
        kept = self.past.kept(self.files.here(path), now, holds)
        indexed = self.files.index.indexed(path.text, content, holds)
        sums = replace(sums, past=before.past + size - forgetting.freed)
        return Planned(file is None, sums, (written, kept, *forgetting.statements, *indexed))

    def check_room(self, sums: Sums, size: int) -> None:
        """Refuse what does not fit. :raises EditError: if so, with what is allowed"""
        limits = self._limits
        if size > limits.largest:
            raise EditError(
                f"File too long: it would have {size} bytes, at most {limits.largest} are kept. Shorten it."
            )
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
