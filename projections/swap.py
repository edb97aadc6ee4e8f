"""The second table of a rebuild, and how it takes the live one's place: what differs between the databases."""

from __future__ import annotations

import re

from sqlalchemy import Connection, inspect, text

from projections.columns import COLUMN_NAMES
from projections.schema import attempts

__all__ = ("SHADOW", "create_shadow", "discard_some", "drop_shadow", "has_shadow", "lock_live", "swap_tables")

LIVE = attempts.name
SHADOW = f"{LIVE}_rebuild"
REPLACED = f"{LIVE}_replaced"

_LOCK_TIMEOUT = "500ms"
_PART = 2000


def has_shadow(connection: Connection) -> bool:
    """Whether an interrupted rebuild left a table that this release can go on with."""
    tables = inspect(connection)
    if not tables.has_table(SHADOW):
        return False
    return {column["name"] for column in tables.get_columns(SHADOW)} == set(COLUMN_NAMES)


def create_shadow(connection: Connection) -> None:
    """Make the second table like the live one, empty."""
    drop_shadow(connection)
    if connection.dialect.name == "sqlite":
        made = str(
            connection.execute(text("SELECT sql FROM sqlite_master WHERE name = :name"), {"name": LIVE}).scalar()
        )
        connection.exec_driver_sql(re.sub(rf'^CREATE TABLE "?{LIVE}"?', f"CREATE TABLE {SHADOW}", made, count=1))
    else:
        connection.exec_driver_sql(f"CREATE TABLE {SHADOW} (LIKE {LIVE} INCLUDING ALL)")


def drop_shadow(connection: Connection) -> None:
    """Remove the second table, where there is one."""
    connection.exec_driver_sql(f"DROP TABLE IF EXISTS {SHADOW}")


def lock_live(connection: Connection) -> None:
    """Keep every append out until the transaction ends.

    Waits for half a second only: appends queue behind this, and give up after two seconds.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
        connection.exec_driver_sql(f"LOCK TABLE {LIVE} IN ACCESS EXCLUSIVE MODE")


def swap_tables(connection: Connection) -> None:
    """Put the second table in the live one's place, with its indexes, triggers and grants."""
    if connection.dialect.name == "sqlite":
        _swap_sqlite(connection)
    else:
        _swap_postgres(connection)


def _swap_sqlite(connection: Connection) -> None:
    attached = text(
        "SELECT type, name, sql FROM sqlite_master WHERE tbl_name = :name AND type <> 'table' AND sql IS NOT NULL"
    )
    things = connection.execute(attached, {"name": LIVE}).all()
    # A rename must leave views and triggers that name the live table as they are.
    legacy = connection.exec_driver_sql("PRAGMA legacy_alter_table").scalar()
    connection.exec_driver_sql("PRAGMA legacy_alter_table = ON")
    try:
        for kind, name, _ in things:
            connection.exec_driver_sql(f'DROP {kind} "{name}"')
        connection.exec_driver_sql(f"ALTER TABLE {LIVE} RENAME TO {REPLACED}")
        connection.exec_driver_sql(f"ALTER TABLE {SHADOW} RENAME TO {LIVE}")
        for _, _, statement in things:
            connection.exec_driver_sql(statement)
    finally:
        connection.exec_driver_sql(f"PRAGMA legacy_alter_table = {legacy or 0}")


def discard_some(connection: Connection) -> bool:
    """Remove a part of the table that was replaced; False: nothing is left of it.

    SQLite frees a table page by page: in one go, that would hold up every append for seconds.
    """
    if not inspect(connection).has_table(REPLACED):
        return False
    some = f"SELECT stream FROM {REPLACED} LIMIT {_PART}"  # noqa: S608
    gone = connection.exec_driver_sql(f"DELETE FROM {REPLACED} WHERE stream IN ({some})").rowcount  # noqa: S608
    if gone < _PART:
        connection.exec_driver_sql(f"DROP TABLE {REPLACED}")
    return gone == _PART


_INDEXES = text("""
    SELECT regexp_replace(pg_get_indexdef(indexrelid), '^.* USING ', ''), indexrelid::regclass::text
      FROM pg_index WHERE indrelid = CAST(:name AS regclass)
""")
_GRANTS = text("""
    SELECT format('GRANT %s ON %s TO %s%s', privilege_type, CAST(:shadow AS regclass),
                  CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END,
                  CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
      FROM pg_class, aclexplode(relacl) WHERE oid = CAST(:name AS regclass)
""")
_TRIGGERS = text("""
    SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgrelid = CAST(:name AS regclass) AND NOT tgisinternal
""")


def _swap_postgres(connection: Connection) -> None:
    names = {row[0]: row[1] for row in connection.execute(_INDEXES, {"name": LIVE})}
    fresh = {row[0]: row[1] for row in connection.execute(_INDEXES, {"name": SHADOW})}
    grants = connection.execute(_GRANTS, {"name": LIVE, "shadow": SHADOW}).scalars().all()
    triggers = connection.execute(_TRIGGERS, {"name": LIVE}).scalars().all()
    for grant in grants:
        connection.exec_driver_sql(grant)
    connection.exec_driver_sql(f"DROP TABLE {LIVE}")
    connection.exec_driver_sql(f"ALTER TABLE {SHADOW} RENAME TO {LIVE}")
    for definition, name in fresh.items():
        if definition in names:
            connection.exec_driver_sql(f"ALTER INDEX {name} RENAME TO {names[definition]}")
    for trigger in triggers:
        connection.exec_driver_sql(trigger)
