"""Tables of the built-in tools that keep something in the journal's database, as SQLAlchemy Core sees them."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, Index, Integer, MetaData, Table, Text

from events.schema import Key, Utc

__all__ = ("EPOCH", "HEAD", "metadata", "note_history", "notes", "policy_epoch", "policy_rules")

HEAD = "0002"
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

policy_rules = Table(
    "policy_rules",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("id", Key(), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("ordinal", Integer, nullable=False),
    Column("verdict", Key(), nullable=False),
    Column("definition", Text, nullable=False),
    Column("expires_at", Utc),
    Column("decision", Text),
    Column("created_at", Utc, nullable=False),
    Column("created_by", Text),
    Column("retired_at", Utc),
    Column("retired_by", Text),
    CheckConstraint("verdict IN ('allow', 'ask', 'deny')", name="policy_rules_verdict"),
)
"""Operators' rules, every version of each; ``retired_at`` says since when a version holds no more. ``tenant`` is ``*``
for rules that hold for every tenant, which no encoded tenant is. ``definition`` is what a rule matches, as JSON."""

Index(
    "policy_rules_current",
    policy_rules.c.tenant,
    sqlite_where=policy_rules.c.retired_at.is_(None),
    postgresql_where=policy_rules.c.retired_at.is_(None),
)

policy_epoch = Table(
    "policy_epoch",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, nullable=False),
    CheckConstraint("id = 1", name="policy_epoch_one"),
)
"""One row with one number: how often rules have changed. Every commit reads it, so that no worker needs a timer."""

EPOCH = "SELECT epoch FROM policy_epoch"
