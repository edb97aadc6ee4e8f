"""Indexes by which calls that are stuck are found."""

import sqlalchemy as sa
from alembic.operations import Operations

__all__ = ("compatible", "down_revision", "revision", "upgrade")

revision = "0002"
down_revision = "0001"
compatible = "0001"


def upgrade(op: Operations) -> None:
    op.drop_index("tool_call_attempts_open", "tool_call_attempts")
    create_partial(op, "tool_call_attempts_waiting", ["gate", "pause_type", "expires_at", "stream"], "proposed")
    create_partial(op, "tool_call_attempts_unconfirmed", ["updated_at"], "executed")
    if op.get_bind().dialect.name == "postgresql":
        # A rebuild that was interrupted would swap in a table without them; it begins anew.
        op.get_bind().exec_driver_sql("DROP TABLE IF EXISTS tool_call_attempts_rebuild")


def create_partial(op: Operations, name: str, columns: list[str], status: str) -> None:
    having = sa.text(f"status = '{status}'")
    op.create_index(name, "tool_call_attempts", columns, sqlite_where=having, postgresql_where=having)
