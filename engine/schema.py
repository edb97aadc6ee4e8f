"""Tables of the built-in tools that keep something in the journal's database, as SQLAlchemy Core sees them."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, Index, Integer, MetaData, Table, Text

from events.schema import Key, Utc

__all__ = (
    "EPOCH",
    "HEAD",
    "metadata",
    "note_history",
    "notes",
    "oauth_tokens",
    "policy_epoch",
    "policy_rules",
    "team_members",
    "tool_acceptances",
    "tool_credential_delegations",
    "tool_optouts",
    "tool_rates",
    "tool_row_versions",
    "tool_rows",
    "tool_shares",
)

HEAD = "0007"
"""The newest revision of this package's migration chain that this release knows."""

metadata = MetaData()

notes = Table(
    "notes",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("tool_id", Key(), primary_key=True),
    Column("title", Key(), primary_key=True),
    Column("content", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Utc, nullable=False),
    Column("updated_at", Utc, nullable=False),
)
"""A user's notes, one row per title and tool row."""

note_history = Table(
    "note_history",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("tool_id", Key(), primary_key=True),
    Column("title", Key(), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("content", Text, nullable=False),
    Column("changed_at", Utc, nullable=False),
    Column("by_call", Text),
)
"""What a note said at each version, and which call wrote it."""

policy_rules = Table(
    "policy_rules",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("id", Key(), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("ordinal", Integer, nullable=False),
    Column("verdict", Key(), nullable=False),
    Column("definition", Text, nullable=False),
    Column("expires_at", Utc),
    Column("decision", Text),
    Column("created_at", Utc, nullable=False),
    Column("created_by", Text),
    Column("retired_at", Utc),
    Column("retired_by", Text),
    CheckConstraint("verdict IN ('allow', 'ask', 'deny')", name="policy_rules_verdict"),
)
"""Operators' rules, every version of each; ``retired_at`` says since when a version holds no more. ``tenant`` is ``*``
for rules that hold for every tenant, which no encoded tenant is. ``definition`` is what a rule matches, as JSON."""

Index(
    "policy_rules_current",
    policy_rules.c.tenant,
    sqlite_where=policy_rules.c.retired_at.is_(None),
    postgresql_where=policy_rules.c.retired_at.is_(None),
)

policy_epoch = Table(
    "policy_epoch",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("epoch", BigInteger, nullable=False),
    CheckConstraint("id = 1", name="policy_epoch_one"),
)
"""One row with one number: how often rules and tool rows have changed; every commit reads it, so nothing is polled."""

EPOCH = "SELECT epoch FROM policy_epoch"

tool_rows = Table(
    "tool_rows",
    metadata,
    Column("id", Key(), primary_key=True),
    Column("tenant", Key(), nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("definition", Text, nullable=False),
    Column("credentials", Text),
    Column("created_at", Utc, nullable=False),
    Column("updated_at", Utc, nullable=False),
    Index("tool_rows_tenant", "tenant"),
)
"""Configured tools as they are; ``tenant`` owns them, ``definition`` is JSON without secrets."""

tool_row_versions = Table(
    "tool_row_versions",
    metadata,
    Column("id", Key(), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("tenant", Key(), nullable=False),
    Column("definition", Text),
    Column("changed_at", Utc, nullable=False),
    Column("changed_by", Text),
)
"""Every version of every row, without its secrets; one whose ``definition`` is null was the removal."""

tool_shares = Table(
    "tool_shares",
    metadata,
    Column("row_id", Key(), primary_key=True),
    Column("kind", Key(), primary_key=True),
    Column("grantee", Key(), primary_key=True),
    Column("role", Key(), nullable=False),
    CheckConstraint("kind IN ('user', 'team', 'everyone')", name="tool_shares_kind"),
    CheckConstraint("role IN ('viewer', 'editor')", name="tool_shares_role"),
    Index("tool_shares_grantee", "grantee", "kind"),
)
"""Who besides its owner may use a row; a user is an encoded tenant, everyone is ``*``."""

tool_acceptances = Table(
    "tool_acceptances",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("row_id", Key(), primary_key=True),
    Column("kind", Key(), primary_key=True),
    Column("accepted_at", Utc, nullable=False),
    CheckConstraint("kind IN ('user', 'everyone')", name="tool_acceptances_kind"),
    Index("tool_acceptances_row", "row_id"),
)
"""Who has accepted which share of a row; it goes when that goes. ``kind`` is the share's: to the tenant, or to all."""

team_members = Table(
    "team_members",
    metadata,
    Column("team", Key(), primary_key=True),
    Column("tenant", Key(), primary_key=True),
    Index("team_members_tenant", "tenant"),
)
"""Who is in which team."""

tool_optouts = Table(
    "tool_optouts",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("name", Key(), primary_key=True),
    Column("standing", Key(), nullable=False, server_default="off"),
)
"""The built-in tools of which a user has said that they are off, or ask first."""

tool_credential_delegations = Table(
    "tool_credential_delegations",
    metadata,
    Column("id", Key(), primary_key=True),
    Column("at", Utc, nullable=False),
    Column("owner", Key(), nullable=False),
    Column("invoker", Key(), nullable=False),
    Column("tool_id", Key(), nullable=False),
    Column("tool_name", Text, nullable=False),
    Column("action_name", Text, nullable=False),
    Column("agent_id", Text),
    Column("key", Text, nullable=False),
    Index("tool_credential_delegations_owner", "owner", "at"),
)
"""Whose secrets a call ran with that was somebody else's; ``owner`` and ``invoker`` are encoded tenants."""

oauth_tokens = Table(
    "oauth_tokens",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("server_url", Key(), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("sealed", Text, nullable=False),
    Column("refreshing_by", Text),
    Column("refreshing_until", Utc),
    Column("updated_at", Utc, nullable=False),
)
"""A user's tokens and client registration for a server, sealed; one worker at a time refreshes them."""

tool_rates = Table(
    "tool_rates",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("tool_id", Key(), primary_key=True),
    Column("action", Key(), primary_key=True),
    Column("due_at", BigInteger, nullable=False),
)
"""When the bucket of an action's rate is full again (see ``engine.pacing.rate``): microseconds since 1970, by the clock
of the database."""
