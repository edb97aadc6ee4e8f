"""Tables of the built-in tools that keep files, to-dos and pages; ``engine.schema`` has the engine's own."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Index, Integer, Table, Text

from engine.schema import metadata
from events.schema import Key, Utc

__all__ = (
    "memory_files",
    "memory_history",
    "todo_counters",
    "todo_history",
    "todos",
    "wiki_links",
    "wiki_pages",
    "wiki_revisions",
)

memory_files = Table(
    "memory_files",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("tool_id", Key(), primary_key=True),
    Column("path", Key(), primary_key=True),
    Column("content", Text, nullable=False),
    Column("size", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Utc, nullable=False),
    Column("updated_at", Utc, nullable=False),
)
"""What a model remembers for a user: one row per file; ``size`` is in bytes of UTF-8."""

memory_history = Table(
    "memory_history",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("tool_id", Key(), primary_key=True),
    Column("path", Key(), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("content", Text),
    Column("changed_at", Utc, nullable=False),
    Column("conversation_id", Text),
    Column("by_call", Text),
)
"""What a file said at each version, and which call wrote it; no content: it was deleted."""

todos = Table(
    "todos",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("tool_id", Key(), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("title", Text, nullable=False),
    Column("done", Boolean, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("due_at", Utc),
    Column("parent", Integer),
    Column("version", Integer, nullable=False),
    Column("created_at", Utc, nullable=False),
    Column("updated_at", Utc, nullable=False),
)
"""A user's to-do items; numbers are never used again."""

todo_history = Table(
    "todo_history",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("tool_id", Key(), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("definition", Text),
    Column("changed_at", Utc, nullable=False),
    Column("by_call", Text),
)
"""What an item was at each version, as JSON; none: it was deleted."""

todo_counters = Table(
    "todo_counters",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("tool_id", Key(), primary_key=True),
    Column("last", Integer, nullable=False),
)
"""The last number that an item was given."""

wiki_pages = Table(
    "wiki_pages",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("wiki", Key(), primary_key=True),
    Column("path", Key(), primary_key=True),
    Column("title", Text, nullable=False),
    Column("content", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Utc, nullable=False),
    Column("updated_at", Utc, nullable=False),
    Column("updated_by", Text),
)
"""Pages as they are; ``tenant`` owns the wiki, whoever else may edit it."""

wiki_revisions = Table(
    "wiki_revisions",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("wiki", Key(), primary_key=True),
    Column("path", Key(), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("title", Text),
    Column("content", Text),
    Column("changed_at", Utc, nullable=False),
    Column("changed_by", Text),
    Column("by_call", Text),
    Column("comment", Text),
)
"""Every version of every page; no content: it was deleted, or moved to where ``comment`` says."""

wiki_links = Table(
    "wiki_links",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("wiki", Key(), primary_key=True),
    Column("path", Key(), primary_key=True),
    Column("target", Key(), primary_key=True),
    Index("wiki_links_target", "tenant", "wiki", "target"),
)
"""Which page links to which path, whether there is a page or not."""
