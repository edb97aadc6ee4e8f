"""Schema migrations: one Alembic chain per package, and the check whether a database fits this release.

A chain's scripts are frozen text under ``<package>/migrations/versions``; each says the oldest revision whose code
still works on what it leaves behind (``compatible``), so that old code keeps running while a fleet is being upgraded.
Nothing here imports Alembic before there is something to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from sqlalchemy import Connection, inspect, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DatabaseError, DBAPIError

from events.errors import SchemaMismatch
from events.schema import HEAD, schemas

__all__ = ("APPLICATION_ID", "EVENTS_CHAIN", "Chain", "check", "epoch_of", "upgrade")

APPLICATION_ID = 0x434A4E4C
"""SQLite's ``PRAGMA application_id`` of our files: "CJNL"."""

_LOCK = 0x434A4E4C_00000001
_OURS = ("tool_call_events", "tool_call_streams", "tool_call_payloads", "tool_call_seals")

_State: TypeAlias = Literal["current", "old", "newer"]


class Chain(msgspec.Struct, frozen=True):
    """One package's migrations.

    :ivar package: the package whose ``migrations`` folder has the scripts, e.g. ``events``
    :ivar head: the newest revision this release knows; digits of equal width, so that they sort as text
    :ivar epoch: SQL of one number that is read along with every commit; raising it tells all writers that something
        has changed which they keep in memory
    """

    package: str
    head: str
    epoch: str | None = None

    @property
    def version_table(self) -> str:
        """The table in which Alembic keeps where this chain is."""
        return f"calljournal_{self.package}_version"


class _Standing(msgspec.Struct, frozen=True):
    """Where a database is in one chain."""

    revision: str
    compatible: str


EVENTS_CHAIN = Chain("events", HEAD)


def epoch_of(chains: Sequence[Chain]) -> str | None:
    """Return the SQL of the one epoch that a set of chains has; None if none has one."""
    return next((chain.epoch for chain in chains if chain.epoch is not None), None)


def check(connection: Connection, chains: Sequence[Chain]) -> None:
    """Make sure that the tables fit this release. One select where they do; writes nothing.

    A newer database is accepted as long as it says that this release's code still works on it.

    :raises SchemaMismatch: if the database is empty, foreign, older, or newer and no longer compatible
    """
    standings = _standings(connection)
    if standings is None:
        _refuse_foreign(connection)
        raise SchemaMismatch(f"{_name(connection)} has no calljournal tables yet: {_advice(connection)}")
    for chain in chains:
        if _state(connection, standings, chain) == "old":
            raise SchemaMismatch(f"{_name(connection)} has older {chain.package} tables: {_advice(connection)}")


def upgrade(connection: Connection, chains: Sequence[Chain]) -> list[str]:
    """Bring the database up to this release, all chains in one transaction, and return the revisions applied.

    Safe to call from many processes at once; a database that is current (or newer and compatible) costs one select and
    is not written to. On SQLite, call it before any pragma that writes, so that a foreign file stays as it is. The
    connection must not be in a transaction.

    :raises SchemaMismatch: if the database is foreign, or made by a newer release; it is left untouched
    """
    standings = _standings(connection)
    if standings is not None and not _pending(connection, standings, chains):
        return []
    if standings is None:
        _refuse_foreign(connection)
    connection.rollback()
    try:
        _lock(connection)
        applied = _apply(connection, chains)
        connection.commit()
    except DatabaseError as error:
        connection.rollback()
        raise SchemaMismatch(f"{_name(connection)} cannot be migrated: {_first_line(error)}") from error
    except BaseException:
        connection.rollback()
        raise
    return applied


def _apply(connection: Connection, chains: Sequence[Chain]) -> list[str]:
    standings = {}
    # Looked for first: a select that fails would end the transaction, and with it the lock.
    if inspect(connection).has_table(schemas.name):
        standings = _select(connection)
    else:
        _refuse_foreign(connection)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    applied: list[str] = []
    for chain in _pending(connection, standings, chains):
        applied += _run(connection, chain)
    return applied


def _pending(connection: Connection, standings: dict[str, _Standing], chains: Sequence[Chain]) -> list[Chain]:
    return [chain for chain in chains if _state(connection, standings, chain) == "old"]


def _run(connection: Connection, chain: Chain) -> list[str]:
    from alembic.config import Config
    from alembic.migration import MigrationContext
    from alembic.operations import Operations
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", f"{chain.package}:migrations")
    scripts = ScriptDirectory.from_config(config)
    steps: list[Any] = []

    def plan(revision: Any, _context: Any) -> list[Any]:
        steps.extend(scripts._upgrade_revs(chain.head, revision))
        return steps

    # Each script is handed its operations: Alembic's own way of passing them is one global for all threads.
    context = MigrationContext.configure(connection, opts={"fn": plan, "version_table": chain.version_table})
    context.run_migrations(op=Operations(context))
    compatible = scripts.get_revision(chain.head).module.compatible
    _record(connection, chain, _Standing(chain.head, compatible))
    return [f"{chain.package}:{step.revision.revision}" for step in steps]


def _record(connection: Connection, chain: Chain, standing: _Standing) -> None:
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    values = {"revision": standing.revision, "compatible": standing.compatible}
    statement = dialect.insert(schemas).values(package=chain.package, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=["package"], set_=values))


def _lock(connection: Connection) -> None:
    # Held to the end of the transaction: a second process waits here, then finds nothing left to do.
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})


def _standings(connection: Connection) -> dict[str, _Standing] | None:
    try:
        return _select(connection)
    except DBAPIError as error:
        connection.rollback()
        if "file is not a database" in str(error.orig):
            raise SchemaMismatch(f"{_name(connection)} is not a SQLite database; give another path") from error
        if inspect(connection).has_table(schemas.name):
            raise
        return None


def _select(connection: Connection) -> dict[str, _Standing]:
    rows = connection.execute(select(schemas.c.package, schemas.c.revision, schemas.c.compatible)).all()
    return {package: _Standing(revision, compatible) for package, revision, compatible in rows}


def _state(connection: Connection, standings: dict[str, _Standing], chain: Chain) -> _State:
    standing = standings.get(chain.package)
    if standing is None or standing.revision < chain.head:
        return "old"
    if standing.revision == chain.head:
        return "current"
    if standing.compatible <= chain.head:
        return "newer"
    raise SchemaMismatch(
        f"{_name(connection)} was made by a newer calljournal ({chain.package} tables at {standing.revision}, this "
        f"release knows {chain.head}): upgrade calljournal"
    )


def _refuse_foreign(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        if connection.exec_driver_sql("PRAGMA application_id").scalar_one() == APPLICATION_ID:
            return
        found = connection.exec_driver_sql("SELECT name FROM sqlite_master LIMIT 1").scalar()
    else:
        found = next((name for name in _OURS if inspect(connection).has_table(name)), None)
    if found is not None:
        raise SchemaMismatch(
            f"{_name(connection)} belongs to something else (it has {found!r}, but is not calljournal's); "
            "nothing was changed; name another database"
        )


def _name(connection: Connection) -> str:
    if connection.dialect.name != "sqlite":
        return f"database {connection.engine.url.database!r}"
    path = connection.exec_driver_sql("PRAGMA database_list").all()[0][2]
    return f"file {path!r}" if path else "the database in memory"


def _advice(connection: Connection) -> str:
    url = connection.engine.url.set(drivername=connection.dialect.name)
    return f"run `calljournal migrate --database {url.render_as_string(hide_password=True)}`"


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).splitlines()[0]
