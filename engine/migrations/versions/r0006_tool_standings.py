"""What a user says of a built-in tool: off, as all that was said until now, or that it asks first."""

import sqlalchemy as sa
from alembic.operations import Operations

__all__ = ("compatible", "down_revision", "revision", "upgrade")

revision = "0006"
down_revision = "0005"
compatible = "0001"


def key() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade(op: Operations) -> None:
    # An older release takes whatever stands here for off, and what it writes is off.
    op.add_column("tool_optouts", sa.Column("standing", key(), nullable=False, server_default="off"))
