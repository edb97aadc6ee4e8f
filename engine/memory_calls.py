"""Calls of ``memory``: arguments in, text for the model out."""

from __future__ import annotations

from typing import Any

from engine.contract import ToolContext
from engine.memory_changes import MemoryChanges
from engine.memory_limits import FOUND, LISTED, LONGEST_PATH, MemoryLimits
from engine.memory_moves import MemoryMoves
from engine.memory_past import PastVersion
from engine.memory_store import MemoryFile
from engine.text_arguments import flag_in, line_in, number_in, query_in, range_in, text_in
from engine.text_editing import EditError, TextKind
from engine.text_fence import fenced
from engine.text_path import TextPath

__all__ = ("MemoryCalls",)


class MemoryCalls:
    """Runs the actions of one call; raises EditError where one cannot be done, which says why."""

    def __init__(self, context: ToolContext, limits: MemoryLimits) -> None:
        self._changes = MemoryChanges(context, limits)
        self._moves = MemoryMoves(context, limits)
        self._files = self._changes.files
        self._past = self._changes.past
        self._kind = TextKind("file", limits.largest)

    async def run(self, action: str, kwargs: dict[str, Any]) -> str | None:
        """Run an action, named without its prefix, and return what it says; None: there is no such action."""
        calls = {
            "view": self.view,
            "search": self.search,
            "history": self.history,
            "create": self.create,
            "str_replace": self.replace,
            "insert": self.insert,
            "delete": self.delete,
            "rename": self.rename,
            "restore": self.restore,
        }
        return await calls[action](kwargs) if action in calls else None

    async def view(self, kwargs: dict[str, Any]) -> str:
        """Return a file's text, or a directory's paths."""
        path, lines = _path(kwargs), range_in(kwargs, "view_range")
        file = None if path.is_directory else await self._files.read(path)
        if file is None:
            return await self._listing(path, text_in(kwargs, "after"))
        about = f"File: {path} (version {file.version}, {file.updated_at:%Y-%m-%d %H:%M} UTC)"
        return fenced(about, file.content if lines is None else self._kind.numbered(file.content, *lines), "(empty)")

    async def search(self, kwargs: dict[str, Any]) -> str:
        """Return where a piece of text occurs."""
        query, below = query_in(kwargs), _path(kwargs, default="/").as_directory
        limit = min(number_in(kwargs, "limit") or FOUND, FOUND)
        hits = await self._files.find(query, limit + 1, below)
        if not hits:
            return f"No file below {below} has it."
        lines = [f"- {hit.key}" + (f" (line {hit.line}): {hit.excerpt}" if hit.line else "") for hit in hits[:limit]]
        more = ["(there are more)"] if len(hits) > limit else []
        return fenced(f"Found below {below}:", "\n".join([*lines, *more]), "")

    async def history(self, kwargs: dict[str, Any]) -> str:
        """Return what is kept of a file, or what was deleted below a directory."""
        path = _path(kwargs)
        versions = [] if path.is_directory else await self._past.versions(path.text)
        if versions:
            return "\n".join([f"Versions of {path}:", *map(_version_line, versions)])
        deleted = await self._past.gone(path.as_directory.text, LISTED)
        if deleted:
            lines = [f"- {each.path}: {_origin(each)}" for each in deleted]
            return "\n".join([f"Deleted or renamed below {path.as_directory}:", *lines])
        return f"Nothing is kept of {path}."

    async def create(self, kwargs: dict[str, Any]) -> str:
        """Write a whole file."""
        path, content = _path(kwargs), self._kind.fitting(text_in(kwargs, "file_text", None))
        if path.is_directory:
            raise EditError("Cannot create a file at directory path")
        is_new = await self._changes.write(path, lambda _: content, number_in(kwargs, "expected_version", 0))
        return f"File {'created' if is_new else 'updated'}: {path}"

    async def replace(self, kwargs: dict[str, Any]) -> str:
        """Replace a piece of a file."""
        path, everywhere = _path(kwargs), flag_in(kwargs, "replace_all")
        old, new = text_in(kwargs, "old_str"), text_in(kwargs, "new_str", None)

        def edit(file: MemoryFile | None) -> str:
            return self._kind.replaced(_present(path, file), old, new, everywhere)

        await self._changes.write(path, edit, number_in(kwargs, "expected_version", 0))
        return f"File updated: {path}"

    async def insert(self, kwargs: dict[str, Any]) -> str:
        """Insert lines into a file."""
        path, line, text = _path(kwargs), line_in(kwargs, "insert_line"), text_in(kwargs, "insert_text")
        if not text:
            raise EditError("insert_text is required.")

        def edit(file: MemoryFile | None) -> str:
            return self._kind.inserted(_present(path, file), line, text)

        await self._changes.write(path, edit, number_in(kwargs, "expected_version", 0))
        return f"Text inserted at line {line} in {path}"

    async def delete(self, kwargs: dict[str, Any]) -> str:
        """Delete a file, or what lies below a directory."""
        path, recursive = _path(kwargs), flag_in(kwargs, "recursive")
        if path.is_root:
            if not recursive:
                raise EditError("This would delete all files; set recursive: true if that is what you mean.")
            return f"Deleted {await self._changes.delete_below(path)} file(s) from memory."
        if not path.is_directory:
            if await self._changes.delete(path, number_in(kwargs, "expected_version", 0)):
                return f"Deleted: {path}"
            files = (await self._files.extent(path.as_directory)).files
            if not files:
                raise EditError(f"File not found: {path}")
            if not recursive:
                raise EditError(f"{path} is a directory of {files} file(s); to delete them all, set recursive: true.")
        files = await self._changes.delete_below(path.as_directory)
        if not files:
            raise EditError(f"Directory not found: {path}")
        return f"Deleted directory and {files} file(s)."

    async def rename(self, kwargs: dict[str, Any]) -> str:
        """Give a file or a directory another path."""
        old, new = _path(kwargs, "old_path"), _path(kwargs, "new_path")
        if old.is_root or new.is_root:
            raise EditError("Cannot rename root directory")
        if not old.is_directory:
            if await self._moves.rename(old, new, number_in(kwargs, "expected_version", 0)):
                return f"Renamed: {old} -> {new}"
            if not await self._files.page(old.as_directory, ""):
                raise EditError(f"File not found: {old}")
        files = await self._moves.rename_below(old.as_directory, new.as_directory)
        return f"Renamed directory: {old.as_directory} -> {new.as_directory} ({files} files)"

    async def restore(self, kwargs: dict[str, Any]) -> str:
        """Bring back what a file said, or what was deleted."""
        path, version = _path(kwargs), number_in(kwargs, "version")
        if path.is_directory:
            files = await self._moves.restore_below(path)
            return f"Restored {files} file(s) below {path}."
        version = await self._changes.restore(path, version)
        return f"Restored: {path} says what it said at version {version}."

    async def _listing(self, path: TextPath, after: str) -> str:
        directory = path.as_directory
        paths = await self._files.page(directory, TextPath.of(after, LONGEST_PATH).text if after else "")
        if not paths and not after:
            if not path.is_directory:
                raise EditError(f"File not found: {path}")
            if not path.is_root and await self._files.read(path.as_file) is not None:
                raise EditError(f"Directory not found: {path}; {path.as_file} is a file.")
        lines = [f"- {each.removeprefix(directory.text)}" for each in paths[:LISTED]]
        more = [f"(there are more; list them with after: {paths[LISTED - 1]})"] if len(paths) > LISTED else []
        return "\n".join([f"Directory: {directory}", *(lines or ["(empty)"]), *more])


def _path(kwargs: dict[str, Any], name: str = "path", default: str | None = None) -> TextPath:
    return TextPath.of(kwargs.get(name, default), LONGEST_PATH)


def _present(path: TextPath, file: MemoryFile | None) -> str:
    if file is None:
        raise EditError(f"File not found: {path}")
    return file.content


def _version_line(version: PastVersion) -> str:
    said = "deleted" if version.deleted else f"{version.size} bytes"
    return f"- version {version.version}: {said}, {_origin(version)}"


def _origin(version: PastVersion) -> str:
    within = f" in conversation {version.conversation_id}" if version.conversation_id else ""
    return f"{version.changed_at:%Y-%m-%d %H:%M} UTC, by call {version.by_call}{within}"
