"""How much of an action's rate is used up, for all workers."""

import sqlalchemy as sa
from alembic.operations import Operations

__all__ = ("compatible", "down_revision", "revision", "upgrade")

revision = "0007"
down_revision = "0006"
compatible = "0001"


def key() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    op.create_table(
        "tool_rates",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("tool_id", key(), primary_key=True),
        sa.Column("action", key(), primary_key=True),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
    )
