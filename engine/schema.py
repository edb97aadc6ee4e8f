"""Tables of the built-in tools that keep something in the journal's database, as SQLAlchemy Core sees them."""

from __future__ import annotations

from sqlalchemy import Column, Integer, MetaData, Table, Text

from events.schema import Key, Utc

__all__ = ("HEAD", "metadata", "note_history", "notes")

HEAD = "0001"
"""The newest revision of this package's migration chain that this release knows."""

metadata = MetaData()

notes = Table(
    "notes",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("tool_id", Key(), primary_key=True),
    Column("title", Key(), primary_key=True),
    Column("content", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Utc, nullable=False),
    Column("updated_at", Utc, nullable=False),
)
"""A user's notes, one row per title and tool row."""

note_history = Table(
    "note_history",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("tool_id", Key(), primary_key=True),
    Column("title", Key(), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("content", Text, nullable=False),
    Column("changed_at", Utc, nullable=False),
    Column("by_call", Text),
)
"""What a note said at each version, and which call wrote it."""
