"""What each tool that keeps things is called with, action by action, to see that nobody meets another's.

A tool joins by an entry in ``TENANCIES``: a sample of every action it has, that works once its seeds are there.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from engine import Tool
from engine.tools.memory import Memory
from engine.tools.notes import Notes
from engine.tools.todo_list import TodoList
from engine.tools.wiki import Wiki

__all__ = ("SECRET", "TENANCIES", "Calls", "Tenancy")

SECRET: Final = "canary-7f3e"
"""Stands in everything that the owner keeps."""

Calls = tuple[tuple[str, dict[str, Any]], ...]


class Tenancy(msgspec.Struct, frozen=True):
    """One tool.

    :ivar seeds: calls that keep something
    :ivar samples: for each action in turn, a call that works after the seeds and the samples before it
    """

    tool: type[Tool]
    seeds: Calls
    samples: Calls


TENANCIES: Final = (
    Tenancy(
        Notes,
        seeds=(
            ("note_overwrite", {"text": SECRET}),
            ("note_overwrite", {"title": SECRET, "text": "first"}),
            ("note_overwrite", {"title": SECRET, "text": f"one\n{SECRET}"}),
        ),
        samples=(
            ("note_view", {"title": SECRET, "view_range": [1, -1]}),
            ("note_list", {}),
            ("note_search", {"query": "canary"}),
            ("note_history", {"title": SECRET}),
            ("note_overwrite", {"text": "new"}),
            ("note_append", {"title": SECRET, "text": "more"}),
            ("note_str_replace", {"title": SECRET, "old_str": "one", "new_str": "two"}),
            ("note_insert", {"title": SECRET, "line_number": 1, "text": "top"}),
            ("note_undo", {"title": SECRET, "version": 1}),
            ("note_delete", {"title": SECRET}),
        ),
    ),
    Tenancy(
        Memory,
        seeds=(
            ("memory_create", {"path": f"/{SECRET}/a", "file_text": f"one\n{SECRET}"}),
            ("memory_create", {"path": f"/{SECRET}/b", "file_text": SECRET}),
            ("memory_create", {"path": "/c", "file_text": SECRET}),
        ),
        samples=(
            ("memory_view", {"path": "/"}),
            ("memory_search", {"query": "canary"}),
            ("memory_history", {"path": "/c"}),
            ("memory_create", {"path": f"/{SECRET}/b", "file_text": "new"}),
            ("memory_str_replace", {"path": f"/{SECRET}/a", "old_str": "one", "new_str": "two"}),
            ("memory_insert", {"path": "/c", "insert_line": 1, "insert_text": "top"}),
            ("memory_delete", {"path": f"/{SECRET}/"}),
            ("memory_rename", {"old_path": "/c", "new_path": "/d"}),
            ("memory_restore", {"path": f"/{SECRET}/"}),
        ),
    ),
    Tenancy(
        TodoList,
        seeds=(
            ("todo_create", {"titles": [f"{SECRET} 1", f"{SECRET} 2", f"{SECRET} 3"], "priority": "high"}),
            ("todo_complete", {"todo_id": 2}),
        ),
        samples=(
            ("todo_list", {"status": "all"}),
            ("todo_get", {"todo_id": "1"}),
            ("todo_history", {"todo_id": 2}),
            ("todo_create", {"title": "new", "parent": 1}),
            ("todo_update", {"todo_id": 3, "title": "new", "due_at": "2030-01-31"}),
            ("todo_complete", {"todo_id": 3}),
            ("todo_reopen", {"todo_id": 2}),
            ("todo_delete", {"todo_id": 1, "recursive": True}),
        ),
    ),
    Tenancy(
        Wiki,
        seeds=(
            ("wiki_create", {"path": f"/{SECRET}/a", "content": f"one\n[[{SECRET}/b]]", "title": SECRET}),
            ("wiki_create", {"path": f"/{SECRET}/b", "content": SECRET}),
            ("wiki_write", {"path": f"/{SECRET}/b", "content": f"{SECRET} 2", "expected_version": 1}),
        ),
        samples=(
            ("wiki_view", {"path": f"/{SECRET}/a"}),
            ("wiki_list", {"prefix": "/"}),
            ("wiki_search", {"text": "canary"}),
            ("wiki_links", {"path": f"/{SECRET}/a"}),
            ("wiki_history", {"path": f"/{SECRET}/b"}),
            ("wiki_diff", {"path": f"/{SECRET}/b", "from": 1, "to": 2}),
            ("wiki_create", {"path": "/new", "content": "new"}),
            ("wiki_write", {"path": f"/{SECRET}/a", "content": "two", "expected_version": 1}),
            ("wiki_restore", {"path": f"/{SECRET}/b", "version": 1}),
            ("wiki_str_replace", {"path": f"/{SECRET}/a", "old_str": "two", "new_str": "one", "expected_version": 2}),
            ("wiki_insert", {"path": f"/{SECRET}/a", "insert_line": 1, "insert_text": "top", "expected_version": 3}),
            ("wiki_rename", {"old_path": f"/{SECRET}/a", "new_path": "/moved"}),
            ("wiki_delete", {"path": f"/{SECRET}/b"}),
        ),
    ),
)
