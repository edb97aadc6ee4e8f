"""Tables of the built-in tools that keep files, to-dos and pages; ``engine.schema`` has the engine's own."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, Table, Text

from engine.schema import metadata
from events.schema import Key, Utc

__all__ = (
    "memory_files",
    "memory_history",
    "text_index",
    "todo_history",
    "todos",
    "tool_ledgers",
    "wiki_links",
    "wiki_pages",
    "wiki_revisions",
)

tool_ledgers = Table(
    "tool_ledgers",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("tool_id", Key(), primary_key=True),
    Column("token", Key(), nullable=False),
    Column("entries", Integer, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("past", BigInteger, nullable=False),
    Column("last", Integer, nullable=False),
)
"""What a tool row keeps for a user, in sums: entries, their bytes, the bytes of their history, the last number given
to one. Every change sets a new token, so what was read before it is known to be old."""

text_index = Table(
    "text_index",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("space", Key(), primary_key=True),
    Column("key", Key(), primary_key=True),
    Column("part", Integer, primary_key=True, autoincrement=False),
    *(Column(f"bits{number}", BigInteger, nullable=False) for number in range(12)),
    sqlite_with_rowid=False,
)
"""Which runs of three bytes may occur in each part of each text (see ``engine.text_index``)."""

memory_files = Table(
    "memory_files",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("tool_id", Key(), primary_key=True),
    Column("path", Key(), primary_key=True),
    Column("size", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Utc, nullable=False),
    Column("updated_at", Utc, nullable=False),
    Column("content", Text, nullable=False),
)
"""What a model remembers for a user: one row per file; ``size`` is in bytes of UTF-8."""

memory_history = Table(
    "memory_history",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("tool_id", Key(), primary_key=True),
    Column("path", Key(), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("size", Integer, nullable=False),
    Column("changed_at", Utc, nullable=False),
    Column("conversation_id", Text),
    Column("by_call", Text),
    Column("content", Text),
    Index("memory_history_changed", "tenant", "tool_id", "changed_at"),
)
"""What a file said at each version, and which call wrote it; no content: it was deleted."""

Index(
    "memory_history_deleted",
    memory_history.c.tenant,
    memory_history.c.tool_id,
    memory_history.c.changed_at,
    sqlite_where=memory_history.c.content.is_(None),
    postgresql_where=memory_history.c.content.is_(None),
)

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
    Index("todos_parent", "tenant", "tool_id", "parent"),
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

Index(
    "todo_history_deleted",
    todo_history.c.tenant,
    todo_history.c.tool_id,
    todo_history.c.changed_at,
    sqlite_where=todo_history.c.definition.is_(None),
    postgresql_where=todo_history.c.definition.is_(None),
)

wiki_pages = Table(
    "wiki_pages",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("wiki", Key(), primary_key=True),
    Column("path", Key(), primary_key=True),
    Column("title", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Utc, nullable=False),
    Column("updated_at", Utc, nullable=False),
    Column("updated_by", Text),
    Column("content", Text, nullable=False),
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
    Column("changed_at", Utc, nullable=False),
    Column("changed_by", Text),
    Column("by_call", Key()),
    Column("comment", Text),
    Column("content", Text),
    Index("wiki_revisions_call", "tenant", "wiki", "by_call"),
)
"""Every version of every page; no content: it was deleted, or moved to where ``comment`` says."""

wiki_links = Table(
    "wiki_links",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("wiki", Key(), primary_key=True),
    Column("path", Key(), primary_key=True),
    Column("target", Key(), primary_key=True),
    Index("wiki_links_target", "tenant", "wiki", "target", "path"),
)
"""Which page links to which path, whether there is a page or not."""
