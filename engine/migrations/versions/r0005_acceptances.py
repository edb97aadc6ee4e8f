"""Who has accepted which row that is shared to it."""

from datetime import datetime

import sqlalchemy as sa
from alembic.operations import Operations

__all__ = ("compatible", "down_revision", "revision", "upgrade")

revision = "0005"
down_revision = "0004"
compatible = "0001"


def key() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def utc() -> sa.types.TypeEngine[datetime]:
    return sa.DateTime(timezone=True).with_variant(sa.String(32), "sqlite")


def upgrade(op: Operations) -> None:
    op.create_table(
        "tool_acceptances",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("row_id", key(), primary_key=True),
        sa.Column("kind", key(), primary_key=True),
        sa.Column("accepted_at", utc(), nullable=False),
        sa.CheckConstraint("kind IN ('user', 'everyone')", name="tool_acceptances_kind"),
    )
    op.create_index("tool_acceptances_row", "tool_acceptances", ["row_id"])
