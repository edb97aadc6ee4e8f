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
    memory(op)
    todo(op)
    wiki(op)


def memory(op: Operations) -> None:
    op.create_table(
        "memory_files",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("tool_id", key(), primary_key=True),
        sa.Column("path", key(), primary_key=True),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", utc(), nullable=False),
        sa.Column("updated_at", utc(), nullable=False),
    )
    op.create_table(
        "memory_history",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("tool_id", key(), primary_key=True),
        sa.Column("path", key(), primary_key=True),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("content", sa.Text()),
        sa.Column("changed_at", utc(), nullable=False),
        sa.Column("conversation_id", sa.Text()),
        sa.Column("by_call", sa.Text()),
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
    op.create_table(
        "todo_counters",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("tool_id", key(), primary_key=True),
        sa.Column("last", sa.Integer(), nullable=False),
    )


def wiki(op: Operations) -> None:
    op.create_table(
        "wiki_pages",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("wiki", key(), primary_key=True),
        sa.Column("path", key(), primary_key=True),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", utc(), nullable=False),
        sa.Column("updated_at", utc(), nullable=False),
        sa.Column("updated_by", sa.Text()),
    )
    op.create_table(
        "wiki_revisions",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("wiki", key(), primary_key=True),
        sa.Column("path", key(), primary_key=True),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("title", sa.Text()),
        sa.Column("content", sa.Text()),
        sa.Column("changed_at", utc(), nullable=False),
        sa.Column("changed_by", sa.Text()),
        sa.Column("by_call", sa.Text()),
        sa.Column("comment", sa.Text()),
    )
    op.create_table(
        "wiki_links",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("wiki", key(), primary_key=True),
        sa.Column("path", key(), primary_key=True),
        sa.Column("target", key(), primary_key=True),
    )
    op.create_index("wiki_links_target", "wiki_links", ["tenant", "wiki", "target"])
