"""The log, its streams, payloads, seals, checkpoints and leases; append-only by trigger."""

from datetime import datetime

import sqlalchemy as sa
from alembic.operations import Operations

__all__ = ("compatible", "down_revision", "revision", "upgrade")

revision = "0001"
down_revision = None
compatible = "0001"

APPEND_ONLY = ("tool_call_events", "tool_call_streams", "tool_call_payloads", "tool_call_seals")


def key() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def utc() -> sa.types.TypeEngine[datetime]:
    return sa.DateTime(timezone=True).with_variant(sa.String(32), "sqlite")


def number() -> sa.types.TypeEngine[int]:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade(op: Operations) -> None:
    create_log(op)
    create_bookkeeping(op)
    if op.get_bind().dialect.name == "sqlite":
        protect_sqlite(op)
    else:
        order_postgres(op)
        protect_postgres(op)


def create_log(op: Operations) -> None:
    op.create_table(
        "tool_call_events",
        sa.Column("position", number(), primary_key=True, autoincrement=False),
        sa.Column("stream", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("tenant", key(), nullable=False),
        sa.Column("key", key(), nullable=False),
        sa.Column("id", key(), nullable=False),
        sa.Column("type", key(), nullable=False),
        sa.Column("schema_version", sa.Integer(), nullable=False),
        sa.Column("recorded_at", utc(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.UniqueConstraint("stream", "version", name="tool_call_events_stream_version"),
    )
    op.create_table(
        "tool_call_streams",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("key", key(), primary_key=True),
        sa.Column("stream", sa.BigInteger(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "tool_call_payloads",
        sa.Column("tenant", key(), primary_key=True),
        sa.Column("digest", key(), primary_key=True),
        sa.Column("length", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
    )
    op.create_table(
        "tool_call_seals",
        sa.Column("last", number(), primary_key=True, autoincrement=False),
        sa.Column("first", sa.BigInteger(), nullable=False, unique=True),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("previous", key(), nullable=False),
        sa.Column("digest", key(), nullable=False),
        sa.Column("sealed_at", utc(), nullable=False),
    )


def create_bookkeeping(op: Operations) -> None:
    op.create_table(
        "tool_call_checkpoints",
        sa.Column("name", key(), primary_key=True),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", utc(), nullable=False),
    )
    op.create_table(
        "worker_leases",
        sa.Column("worker", key(), primary_key=True),
        sa.Column("started_at", utc(), nullable=False),
        sa.Column("expires_at", utc(), nullable=False),
    )
    op.create_index("worker_leases_expiry", "worker_leases", ["expires_at"])
    op.create_table(
        "calljournal_schema",
        sa.Column("package", key(), primary_key=True),
        sa.Column("revision", key(), nullable=False),
        sa.Column("compatible", key(), nullable=False),
    )


def order_postgres(op: Operations) -> None:
    # CACHE 1: a session that kept numbers back would use them below another's fence.
    op.execute("CREATE SEQUENCE tool_call_position AS bigint CACHE 1")
    # Numbers are given before commits show. Each writer holds a shared lock that says from where on its numbers are
    # (434A in the top 16 bits, the last number before its own below); what lies below all of them is settled. The
    # sequence must be read before the locks, and the rows in a later statement.
    op.execute("""
        CREATE FUNCTION calljournal_head_1() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
        DECLARE
            v_last bigint;
            v_fence bigint;
        BEGIN
            SELECT CASE WHEN is_called THEN last_value ELSE 0 END INTO v_last FROM tool_call_position;
            SELECT min(((classid::bigint & 65535) << 32) | objid::bigint) INTO v_fence
              FROM pg_locks
             WHERE locktype = 'advisory' AND objsubid = 1 AND granted
               AND (classid::bigint >> 16) = x'434A'::bigint
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
            RETURN least(v_last, v_fence);
        END $$
    """)


# INSERT OR REPLACE deletes without firing a delete trigger, so rows that are there are looked for before each insert.
_SQLITE_TAKEN = {
    "tool_call_events": "new.position <= (SELECT max(position) FROM tool_call_events)"
    " OR EXISTS (SELECT 1 FROM tool_call_events WHERE stream = new.stream AND version = new.version)",
    "tool_call_streams": "EXISTS (SELECT 1 FROM tool_call_streams WHERE tenant = new.tenant AND key = new.key)",
    "tool_call_payloads": "EXISTS (SELECT 1 FROM tool_call_payloads WHERE tenant = new.tenant AND digest = new.digest)",
    "tool_call_seals": "new.last <= (SELECT max(last) FROM tool_call_seals)"
    " OR new.first <= (SELECT max(last) FROM tool_call_seals)",
}


def protect_sqlite(op: Operations) -> None:
    for table in APPEND_ONLY:
        refusal = f"SELECT RAISE(ABORT, 'the log is append-only: {table} refuses "
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} BEGIN {refusal}{verb}'); END"
            )
        op.execute(
            f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN {_SQLITE_TAKEN[table]}"
            f" BEGIN {refusal}an INSERT over a row that is there'); END"
        )


def protect_postgres(op: Operations) -> None:
    op.execute("""
        CREATE FUNCTION calljournal_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            RAISE EXCEPTION 'the log is append-only: % refuses %', TG_TABLE_NAME, TG_OP
                USING ERRCODE = 'feature_not_supported';
        END $$
    """)
    for table in APPEND_ONLY:
        op.execute(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION calljournal_append_only()"
        )
