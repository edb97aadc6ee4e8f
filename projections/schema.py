"""The state table ``tool_call_attempts``, as SQLAlchemy Core sees it (DESIGN 5)."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, CheckConstraint, Column, Index, Integer, MetaData, Table, Text

from events.schema import Key, Utc

__all__ = ("HEAD", "attempts", "metadata", "parked")

HEAD = "0002"
"""The newest revision of this package's migration chain that this release knows."""

metadata = MetaData()

attempts = Table(
    "tool_call_attempts",
    metadata,
    Column("stream", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("tenant", Key(), nullable=False),
    Column("key", Key(), nullable=False),
    Column("call_id", Text, nullable=False),
    Column("message_id", Text),
    Column("run_id", Text),
    Column("tool_id", Text),
    Column("tool_name", Text, nullable=False),
    Column("action_name", Text, nullable=False),
    Column("arguments", Text),
    Column("digest", Text, nullable=False),
    Column("status", Key(), nullable=False),
    Column("gate", Key(), nullable=False),
    Column("pause_type", Key()),
    Column("rule", Text),
    Column("expires_at", Utc),
    Column("result_status", Text),
    Column("result", Text),
    Column("error", Text),
    Column("artifact_id", Text),
    Column("worker", Text, nullable=False),
    Column("headless", Boolean, nullable=False),
    Column("conversation_id", Text),
    Column("agent_id", Text),
    Column("llm_name", Text, nullable=False),
    Column("effect", Text, nullable=False),
    Column("idempotent", Boolean, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("late", Boolean, nullable=False),
    Column("traceparent", Text),
    Column("proposed_at", Utc, nullable=False),
    Column("updated_at", Utc, nullable=False),
    Column("version", Integer, nullable=False),
    Column("position", BigInteger, nullable=False),
    CheckConstraint(
        "status IN ('proposed', 'executed', 'confirmed', 'denied', 'failed')", name="tool_call_attempts_status"
    ),
    CheckConstraint("gate IN ('open', 'paused', 'approved', 'claimed')", name="tool_call_attempts_gate"),
)
"""One row per stream. ``stream`` is the log's own number of it (``tool_call_streams`` maps tenant and key to it), so a
row is unique per (tenant, key) without a second text index; a message's rows are the streams whose key begins so."""

Index(
    "tool_call_attempts_waiting",
    attempts.c.gate,
    attempts.c.pause_type,
    attempts.c.expires_at,
    attempts.c.stream,
    sqlite_where=attempts.c.status == "proposed",
    postgresql_where=attempts.c.status == "proposed",
)
"""Calls that have not ended, by what they wait for and until when: what is overdue is found without reading all."""

Index(
    "tool_call_attempts_unconfirmed",
    attempts.c.updated_at,
    sqlite_where=attempts.c.status == "executed",
    postgresql_where=attempts.c.status == "executed",
)
"""Calls whose message was not confirmed, the oldest first."""

parked = Table(
    "projection_parked",
    metadata,
    Column("projection", Key(), primary_key=True),
    Column("position", BigInteger, primary_key=True),
    Column("error", Text, nullable=False),
    Column("parked_at", Utc, nullable=False),
)
"""Events that a read model could not take in: passed over, kept here with the reason, until the read model is reset."""

Index(
    "tool_call_attempts_conversation",
    attempts.c.tenant,
    attempts.c.conversation_id,
    sqlite_where=attempts.c.conversation_id.is_not(None),
    postgresql_where=attempts.c.conversation_id.is_not(None),
)
"""For what a conversation has called before: looked up once a turn. Calls without a conversation cost nothing."""
