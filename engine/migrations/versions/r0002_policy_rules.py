"""Operators' rules, and the number that tells every worker of a change."""

from datetime import datetime

import sqlalchemy as sa
from alembic.operations import Operations

__all__ = ("compatible", "down_revision", "revision", "upgrade")

revision = "0002"
down_revision = "0001"
compatible = "0001"


def key() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def utc() -> sa.types.TypeEngine[datetime]:
    return sa.DateTime(timezone=True).with_variant(sa.String(32), "sqlite")


def upgrade(op: Operations) -> None:
    op.create_table(
        "policy_rules",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("id", key(), primary_key=True),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("verdict", key(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("expires_at", utc()),
        sa.Column("decision", sa.Text()),
        sa.Column("created_at", utc(), nullable=False),
        sa.Column("created_by", sa.Text()),
        sa.Column("retired_at", utc()),
        sa.Column("retired_by", sa.Text()),
        sa.CheckConstraint("verdict IN ('allow', 'ask', 'deny')", name="policy_rules_verdict"),
    )
    op.create_index(
        "policy_rules_current",
        "policy_rules",
        ["tenant"],
        sqlite_where=sa.text("retired_at IS NULL"),
        postgresql_where=sa.text("retired_at IS NULL"),
    )
    epoch = op.create_table(
        "policy_epoch",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("id = 1", name="policy_epoch_one"),
    )
    op.bulk_insert(epoch, [{"id": 1, "epoch": 0}])
