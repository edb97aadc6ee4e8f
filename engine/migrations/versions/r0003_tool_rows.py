"""Tool rows with their history, who may use them, what users switched off, whose secrets ran for whom, OAuth tokens."""

from datetime import datetime

import sqlalchemy as sa
from alembic.operations import Operations

__all__ = ("compatible", "down_revision", "revision", "upgrade")

revision = "0003"
down_revision = "0002"
compatible = "0001"


def key() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def utc() -> sa.types.TypeEngine[datetime]:
    return sa.DateTime(timezone=True).with_variant(sa.String(32), "sqlite")


def upgrade(op: Operations) -> None:
    rows(op)
    sharing(op)
    audit(op)
    tokens(op)


def rows(op: Operations) -> None:
    op.create_table(
        "tool_rows",
        sa.Column("id", key(), primary_key=True),
        sa.Column("tenant", key(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("credentials", sa.Text()),
        sa.Column("created_at", utc(), nullable=False),
        sa.Column("updated_at", utc(), nullable=False),
    )
    op.create_index("tool_rows_tenant", "tool_rows", ["tenant"])
    op.create_table(
        "tool_row_versions",
        sa.Column("id", key(), primary_key=True),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("tenant", key(), nullable=False),
        sa.Column("definition", sa.Text()),
        sa.Column("changed_at", utc(), nullable=False),
        sa.Column("changed_by", sa.Text()),
    )


def sharing(op: Operations) -> None:
    op.create_table(
        "tool_shares",
        sa.Column("row_id", key(), primary_key=True),
        sa.Column("kind", key(), primary_key=True),
        sa.Column("grantee", key(), primary_key=True),
        sa.Column("role", key(), nullable=False),
        sa.CheckConstraint("kind IN ('user', 'team', 'everyone')", name="tool_shares_kind"),
        sa.CheckConstraint("role IN ('viewer', 'editor')", name="tool_shares_role"),
    )
    op.create_index("tool_shares_grantee", "tool_shares", ["grantee", "kind"])
    op.create_table(
        "team_members",
        sa.Column("team", key(), primary_key=True),
        sa.Column("tenant", key(), primary_key=True),
    )
    op.create_index("team_members_tenant", "team_members", ["tenant"])
    op.create_table(
        "tool_optouts",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("name", key(), primary_key=True),
    )


def audit(op: Operations) -> None:
    op.create_table(
        "tool_credential_delegations",
        sa.Column("id", key(), primary_key=True),
        sa.Column("at", utc(), nullable=False),
        sa.Column("owner", key(), nullable=False),
        sa.Column("invoker", key(), nullable=False),
        sa.Column("tool_id", key(), nullable=False),
        sa.Column("tool_name", sa.Text(), nullable=False),
        sa.Column("action_name", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text()),
        sa.Column("key", sa.Text(), nullable=False),
    )
    op.create_index("tool_credential_delegations_owner", "tool_credential_delegations", ["owner", "at"])


def tokens(op: Operations) -> None:
    op.create_table(
        "oauth_tokens",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("server_url", key(), primary_key=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("refreshing_by", sa.Text()),
        sa.Column("refreshing_until", utc()),
        sa.Column("updated_at", utc(), nullable=False),
    )
