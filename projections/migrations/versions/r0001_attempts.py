"""``tool_call_attempts``, and on Postgres the function that appends to the log and moves this table along."""

from datetime import datetime
from pathlib import Path

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


def number() -> sa.types.TypeEngine[int]:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade(op: Operations) -> None:
    create_attempts(op)
    is_open = sa.text("status = 'proposed'")
    op.create_index(
        "tool_call_attempts_open",
        "tool_call_attempts",
        ["updated_at"],
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
    op.create_table(
        "projection_parked",
        sa.Column("projection", key(), primary_key=True),
        sa.Column("position", sa.BigInteger(), primary_key=True),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("parked_at", utc(), nullable=False),
    )
    in_conversation = sa.text("conversation_id IS NOT NULL")
    op.create_index(
        "tool_call_attempts_conversation",
        "tool_call_attempts",
        ["tenant", "conversation_id"],
        sqlite_where=in_conversation,
        postgresql_where=in_conversation,
    )
    if op.get_bind().dialect.name == "postgresql":
        function = Path(__file__).parent.parent / "sql" / "append_1.sql"
        op.get_bind().exec_driver_sql(function.read_text(encoding="utf-8"))


def create_attempts(op: Operations) -> None:
    op.create_table(
        "tool_call_attempts",
        *of_the_call(),
        *of_its_state(),
        sa.CheckConstraint(
            "status IN ('proposed', 'executed', 'confirmed', 'denied', 'failed')", name="tool_call_attempts_status"
        ),
        sa.CheckConstraint("gate IN ('open', 'paused', 'approved', 'claimed')", name="tool_call_attempts_gate"),
    )


def of_the_call() -> list[sa.Column[object]]:
    return [
        sa.Column("stream", number(), primary_key=True, autoincrement=False),
        sa.Column("tenant", key(), nullable=False),
        sa.Column("key", key(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("message_id", sa.Text()),
        sa.Column("run_id", sa.Text()),
        sa.Column("tool_id", sa.Text()),
        sa.Column("tool_name", sa.Text(), nullable=False),
        sa.Column("action_name", sa.Text(), nullable=False),
        sa.Column("arguments", sa.Text()),
        sa.Column("digest", sa.Text(), nullable=False),
    ]


def of_its_state() -> list[sa.Column[object]]:
    return [
        sa.Column("status", key(), nullable=False),
        sa.Column("gate", key(), nullable=False),
        sa.Column("pause_type", key()),
        sa.Column("rule", sa.Text()),
        sa.Column("expires_at", utc()),
        sa.Column("result_status", sa.Text()),
        sa.Column("result", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("artifact_id", sa.Text()),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("headless", sa.Boolean(), nullable=False),
        sa.Column("conversation_id", sa.Text()),
        sa.Column("agent_id", sa.Text()),
        sa.Column("llm_name", sa.Text(), nullable=False),
        sa.Column("effect", sa.Text(), nullable=False),
        sa.Column("idempotent", sa.Boolean(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("late", sa.Boolean(), nullable=False),
        sa.Column("traceparent", sa.Text()),
        sa.Column("proposed_at", utc(), nullable=False),
        sa.Column("updated_at", utc(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
    ]
