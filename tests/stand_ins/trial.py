"""Calls to try, and those of the tools that call no service: what they keep, they keep in the journal's database."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

__all__ = ("KEEPING", "Trial")


class Trial(msgspec.Struct, frozen=True):
    """A call to try."""

    action: str
    arguments: dict[str, Any] = {}


_FILE: dict[str, Any] = {"path": "/harbour.md"}
_PAGE: dict[str, Any] = {"path": "/harbour"}
_ITEM: dict[str, Any] = {"todo_id": 1}
_SWAP: dict[str, Any] = {"old_str": "Nine", "new_str": "Ten"}
_LINE: dict[str, Any] = {"insert_line": 1, "insert_text": "Depths"}

KEEPING: Mapping[str, tuple[Trial, ...]] = MappingProxyType(
    {
        "think": (Trial("reason", {"reasoning": "Nine metres."}),),
        "notes": (
            Trial("note_overwrite", {"text": "Nine metres."}),
            Trial("note_append", {"text": "Ten at the pier."}),
            Trial("note_str_replace", _SWAP),
            Trial("note_insert", {"line_number": 1, "text": "Depths"}),
            Trial("note_search", {"query": "metres"}),
            Trial("note_list"),
            Trial("note_view"),
            Trial("note_history"),
            Trial("note_delete"),
            Trial("note_undo"),
        ),
        "memory": (
            Trial("memory_create", {**_FILE, "file_text": "Nine metres."}),
            Trial("memory_str_replace", {**_FILE, **_SWAP}),
            Trial("memory_insert", {**_FILE, **_LINE}),
            Trial("memory_search", {"query": "metres"}),
            Trial("memory_view", _FILE),
            Trial("memory_history", _FILE),
            Trial("memory_delete", _FILE),
            Trial("memory_restore", _FILE),
            Trial("memory_rename", {"old_path": "/harbour.md", "new_path": "/pier.md"}),
        ),
        "todo_list": (
            Trial("todo_create", {"title": "Sound the pier"}),
            Trial("todo_update", {**_ITEM, "priority": "high"}),
            Trial("todo_complete", _ITEM),
            Trial("todo_reopen", _ITEM),
            Trial("todo_list"),
            Trial("todo_get", _ITEM),
            Trial("todo_history", _ITEM),
            Trial("todo_delete", _ITEM),
        ),
        "wiki": (
            Trial("wiki_create", {**_PAGE, "content": "Nine metres."}),
            Trial("wiki_write", {**_PAGE, "content": "Nine metres at [[/pier]].", "expected_version": 1}),
            Trial("wiki_str_replace", {**_PAGE, **_SWAP, "expected_version": 2}),
            Trial("wiki_insert", {**_PAGE, **_LINE, "expected_version": 3}),
            Trial("wiki_view", _PAGE),
            Trial("wiki_list"),
            Trial("wiki_search", {"text": "metres"}),
            Trial("wiki_links", _PAGE),
            Trial("wiki_history", _PAGE),
            Trial("wiki_diff", {**_PAGE, "from": 1}),
            Trial("wiki_restore", {**_PAGE, "version": 1}),
            Trial("wiki_rename", {"old_path": "/harbour", "new_path": "/port"}),
            Trial("wiki_delete", {"path": "/port"}),
        ),
    }
)
"""By tool: every action once, in an order in which each finds what it needs."""
