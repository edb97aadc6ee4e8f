"""The actions of ``memory``, as a model is told of them."""

from __future__ import annotations

from typing import Any

from engine.action_entry import (
    MOST,
    action_definition,
    lines_definition,
    replacing_definitions,
    text_definition,
    whole_number_definition,
)
from engine.memory_limits import FOUND, LONGEST_PATH, RESTORABLE
from engine.text_arguments import LONGEST_QUERY

__all__ = ("memory_actions",)


def memory_actions() -> list[dict[str, Any]]:
    """Return the actions: those that only read, then those that write."""
    return [*_reading(), *_editing(), *_moving()]


def _path(description: str) -> dict[str, Any]:
    return {**text_definition(description, LONGEST_PATH), "minLength": 1}


def _expected() -> dict[str, Any]:
    return whole_number_definition(
        "The version of the file you have seen; if it has been changed since, nothing is done.", 0, MOST
    )


def _look(name: str, description: str, properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return action_definition(name, description, properties, *required, effect="read", idempotent=True)


def _reading() -> list[dict[str, Any]]:
    query = {**text_definition("What to look for, literally.", LONGEST_QUERY), "minLength": 1}
    found = whole_number_definition(f"How many files to list; {FOUND} if left out.", 1, FOUND)
    return [
        _look(
            "memory_view",
            "Read a file of your memory, or list a directory; / lists everything. Look here before you begin.",
            {
                "path": _path("The file, or the directory."),
                "view_range": lines_definition(),
                "after": _path("Of a directory: list only paths after this one."),
            },
            "path",
        ),
        _look(
            "memory_search",
            "Find files whose path or content has a piece of text, in any case.",
            {"query": query, "path": _path("Look only below this directory."), "limit": found},
            "query",
        ),
        _look(
            "memory_history",
            "List the versions of a file that are kept, with when and by which call each was written; or, of a "
            "directory, the deleted files that can be restored.",
            {"path": _path("The file, or the directory.")},
            "path",
        ),
    ]


def _editing() -> list[dict[str, Any]]:
    path = _path("The file, e.g. /projects/alpha.md. Directories need not be made.")
    line = "The line before which the text is put, counted from 1; one past the last appends."
    return [
        action_definition(
            "memory_create",
            "Write a whole file. One that is there is replaced; memory_restore brings back what it said.",
            {"path": path, "file_text": text_definition("What it says."), "expected_version": _expected()},
            "path",
            "file_text",
        ),
        action_definition(
            "memory_str_replace",
            "Replace a piece of a file's text. The piece is taken literally and must occur exactly once, unless "
            "replace_all is set.",
            {"path": path, **replacing_definitions("file"), "expected_version": _expected()},
            "path",
            "old_str",
            "new_str",
        ),
        action_definition(
            "memory_insert",
            "Insert lines into a file.",
            {
                "path": path,
                "insert_line": whole_number_definition(line, 1, MOST),
                "insert_text": text_definition("The lines."),
                "expected_version": _expected(),
            },
            "path",
            "insert_line",
            "insert_text",
        ),
    ]


def _moving() -> list[dict[str, Any]]:
    recursive = {"type": "boolean", "description": "Delete a whole directory.", "default": False}
    version = whole_number_definition("The version to go back to, see memory_history.", 1, MOST)
    return [
        action_definition(
            "memory_delete",
            "Delete a file, or a directory with all that is in it (write it with a slash at its end, or set recursive; "
            f"for / set recursive). For {RESTORABLE.days} days memory_restore brings it back.",
            {"path": _path("What to delete."), "recursive": recursive, "expected_version": _expected()},
            "path",
            effect="destroy",
        ),
        action_definition(
            "memory_rename",
            "Give a file or a directory another path. Nothing is overwritten.",
            {
                "old_path": _path("What is renamed."),
                "new_path": _path("What it is called then."),
                "expected_version": _expected(),
            },
            "old_path",
            "new_path",
        ),
        action_definition(
            "memory_restore",
            "Bring a deleted file back, or what was last deleted below a directory (write it with a slash at its end); "
            "or make a file say what it said at a version.",
            {"path": _path("What to bring back."), "version": version},
            "path",
        ),
    ]
