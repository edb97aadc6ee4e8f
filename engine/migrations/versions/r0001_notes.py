"""Notes and their history."""

from datetime import datetime

import sqlalchemy as sa
from alembic.operations import Operations

__all__ = ("compatible", "down_revision", "revision", "upgrade")

revision = "0001"
down_revision = None
compatible = "0001"


def key() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def utc() -> sa.types.TypeEngine[datetime]:
    return sa.DateTime(timezone=True).with_variant(sa.String(32), "sqlite")


def upgrade(op: Operations) -> None:
    op.create_table(
        "notes",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("tool_id", key(), primary_key=True),
        sa.Column("title", key(), primary_key=True),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", utc(), nullable=False),
        sa.Column("updated_at", utc(), nullable=False),
    )
    op.create_table(
        "note_history",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("tool_id", key(), primary_key=True),
        sa.Column("title", key(), primary_key=True),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("changed_at", utc(), nullable=False),
        sa.Column("by_call", sa.Text()),
    )
