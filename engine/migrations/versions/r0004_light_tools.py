"""Files that a model remembers, to-do items, wikis: as they are, and as they were."""

from datetime import datetime

import sqlalchemy as sa
from alembic.operations import Operations

__all__ = ("compatible", "down_revision", "revision", "upgrade")

revision = "0004"
down_revision = "0003"
compatible = "0001"


def key() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def utc() -> sa.types.TypeEngine[datetime]:
    return sa.DateTime(timezone=True).with_variant(sa.String(32), "sqlite")


def upgrade(op: Operations) -> None:
    ledgers(op)
    index(op)
    memory(op)
    todo(op)
    wiki(op)


def ledgers(op: Operations) -> None:
    op.create_table(
        "tool_ledgers",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("tool_id", key(), primary_key=True),
        sa.Column("token", key(), nullable=False),
        sa.Column("entries", sa.Integer(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("past", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.Integer(), nullable=False),
    )
    op.execute(
        "INSERT INTO tool_ledgers (tenant, tool_id, token, entries, size, past, last) "
        "SELECT tenant, tool_id, 'before', count(*), 0, 0, 0 FROM notes GROUP BY tenant, tool_id"
    )


def index(op: Operations) -> None:
    bits = [f"bits{number}" for number in range(12)]
    op.create_table(
        "text_index",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("space", key(), primary_key=True),
        sa.Column("key", key(), primary_key=True),
        sa.Column("part", sa.Integer(), primary_key=True, autoincrement=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in bits),
        sqlite_with_rowid=False,
    )
    # Of notes that are there already nothing is known: they may hold anything.
    columns = ", ".join(["tenant", "space", "key", "part", *bits])
    every = ", ".join([str(2**62 - 1)] * len(bits))
    op.execute(
        f"INSERT INTO text_index ({columns}) SELECT tenant, 'notes:' || tool_id, title, 0, {every} FROM notes"  # noqa: S608
    )


def memory(op: Operations) -> None:
    op.create_table(
        "memory_files",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("tool_id", key(), primary_key=True),
        sa.Column("path", key(), primary_key=True),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", utc(), nullable=False),
        sa.Column("updated_at", utc(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
    )
    op.create_table(
        "memory_history",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("tool_id", key(), primary_key=True),
        sa.Column("path", key(), primary_key=True),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("changed_at", utc(), nullable=False),
        sa.Column("conversation_id", sa.Text()),
        sa.Column("by_call", sa.Text()),
        sa.Column("content", sa.Text()),
    )
    op.create_index("memory_history_changed", "memory_history", ["tenant", "tool_id", "changed_at"])
    deleted = sa.text("content IS NULL")
    op.create_index(
        "memory_history_deleted",
        "memory_history",
        ["tenant", "tool_id", "changed_at"],
        sqlite_where=deleted,
        postgresql_where=deleted,
    )


def todo(op: Operations) -> None:
    op.create_table(
        "todos",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("tool_id", key(), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("done", sa.Boolean(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("due_at", utc()),
        sa.Column("parent", sa.Integer()),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", utc(), nullable=False),
        sa.Column("updated_at", utc(), nullable=False),
    )
    op.create_table(
        "todo_history",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("tool_id", key(), primary_key=True),
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("definition", sa.Text()),
        sa.Column("changed_at", utc(), nullable=False),
        sa.Column("by_call", sa.Text()),
    )
    op.create_index("todos_parent", "todos", ["tenant", "tool_id", "parent"])
    deleted = sa.text("definition IS NULL")
    op.create_index(
        "todo_history_deleted",
        "todo_history",
        ["tenant", "tool_id", "changed_at"],
        sqlite_where=deleted,
        postgresql_where=deleted,
    )


def wiki(op: Operations) -> None:
    op.create_table(
        "wiki_pages",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("wiki", key(), primary_key=True),
        sa.Column("path", key(), primary_key=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", utc(), nullable=False),
        sa.Column("updated_at", utc(), nullable=False),
        sa.Column("updated_by", sa.Text()),
        sa.Column("content", sa.Text(), nullable=False),
    )
    op.create_table(
        "wiki_revisions",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("wiki", key(), primary_key=True),
        sa.Column("path", key(), primary_key=True),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("title", sa.Text()),
        sa.Column("changed_at", utc(), nullable=False),
        sa.Column("changed_by", sa.Text()),
        sa.Column("by_call", key()),
        sa.Column("comment", sa.Text()),
        sa.Column("content", sa.Text()),
    )
    op.create_index("wiki_revisions_call", "wiki_revisions", ["tenant", "wiki", "by_call"])
    op.create_table(
        "wiki_links",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("wiki", key(), primary_key=True),
        sa.Column("path", key(), primary_key=True),
        sa.Column("target", key(), primary_key=True),
    )
    op.create_index("wiki_links_target", "wiki_links", ["tenant", "wiki", "target", "path"])
