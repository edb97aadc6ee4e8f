"""The log's tables, for SQLite and Postgres alike, as SQLAlchemy Core sees them.

Only what runs a statement imports this module: it costs SQLAlchemy's import.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Dialect,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.types import TypeEngine

__all__ = (
    "HEAD",
    "Key",
    "Utc",
    "checkpoints",
    "events",
    "leases",
    "metadata",
    "payloads",
    "schemas",
    "seals",
    "streams",
    "utc_text",
)

HEAD = "0001"
"""The newest revision of this package's migration chain that this release knows."""

metadata = MetaData()


class Utc(TypeDecorator[datetime]):
    """A moment in UTC: timestamptz on Postgres, ISO 8601 text with microseconds on SQLite (readable, and it sorts)."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Choose the column type of the database."""
        return dialect.type_descriptor(String(32) if dialect.name == "sqlite" else DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        """Turn a moment into what the driver takes."""
        if value is None or dialect.name != "sqlite":
            return value
        return utc_text(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Turn what the driver gives into a moment."""
        if isinstance(value, str):
            return datetime.fromisoformat(value)
        return value  # type: ignore[no-any-return]


def utc_text(moment: datetime) -> str:
    """Return the SQLite column form of a moment; always the same width, so that text order is time order."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def Key() -> Text:  # noqa: N802
    """Text that is compared byte by byte on both databases."""
    return Text().with_variant(Text(collation="C"), "postgresql")


events = Table(
    "tool_call_events",
    metadata,
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("stream", BigInteger, nullable=False),
    Column("version", Integer, nullable=False),
    Column("tenant", Key(), nullable=False),
    Column("key", Key(), nullable=False),
    Column("id", Key(), nullable=False),
    Column("type", Key(), nullable=False),
    Column("schema_version", Integer, nullable=False),
    Column("recorded_at", Utc, nullable=False),
    Column("data", Text, nullable=False),
    UniqueConstraint("stream", "version", name="tool_call_events_stream_version"),
)
"""The log. ``stream`` is the position of the stream's first event: an integer keeps the index small and its inserts
sequential; (tenant, key) stand beside it so that a record is whole by itself."""

streams = Table(
    "tool_call_streams",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("key", Key(), primary_key=True),
    Column("stream", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""(tenant, key) to stream number: the one text index of the log, and what makes a stream begin only once."""

payloads = Table(
    "tool_call_payloads",
    metadata,
    Column("tenant", Key(), primary_key=True),
    Column("digest", Key(), primary_key=True),
    Column("length", BigInteger, nullable=False),
    Column("content", Text, nullable=False),
)
"""Whole results that are too long for their event, by SHA-256 of their text, per tenant."""

seals = Table(
    "tool_call_seals",
    metadata,
    Column("last", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=False),
    Column("first", BigInteger, nullable=False, unique=True),
    Column("count", BigInteger, nullable=False),
    Column("previous", Key(), nullable=False),
    Column("digest", Key(), nullable=False),
    Column("sealed_at", Utc, nullable=False),
)
"""The hash chain: one row per sealed range of positions."""

checkpoints = Table(
    "tool_call_checkpoints",
    metadata,
    Column("name", Key(), primary_key=True),
    Column("position", BigInteger, nullable=False),
    Column("updated_at", Utc, nullable=False),
)
"""How far each named subscription has come."""

leases = Table(
    "worker_leases",
    metadata,
    Column("worker", Key(), primary_key=True),
    Column("started_at", Utc, nullable=False),
    Column("expires_at", Utc, nullable=False),
    Index("worker_leases_expiry", "expires_at"),
)
"""One row per open engine: alive until ``expires_at``."""

schemas = Table(
    "calljournal_schema",
    metadata,
    Column("package", Key(), primary_key=True),
    Column("revision", Key(), nullable=False),
    Column("compatible", Key(), nullable=False),
)
"""Per package: the revision the tables are at, and the oldest revision whose code still works on them."""
