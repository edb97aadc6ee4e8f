"""The migration chains: from nothing to current on both databases, and what an unfit database is told."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.ext.asyncio import create_async_engine

import engine.schema
import engine.tool_schema
import events.schema
import projections.schema
from engine.migration import CHAINS, ENGINE_CHAIN
from events.errors import LogUnavailable, SchemaMismatch
from events.migration import APPLICATION_ID, EVENTS_CHAIN, Chain, check, upgrade
from events.postgres import migrate_postgres, open_postgres
from events.schema import schemas
from events.sqlite import open_sqlite
from projections.attempts import AttemptsProjection
from projections.migration import PROJECTIONS_CHAIN
from tests.postgres_server import PASSWORD, PostgresServer

ENGINE = [f"engine:{number:04}" for number in range(1, int(engine.schema.HEAD) + 1)]
ALL = ["events:0001", "projections:0001", "projections:0002", *ENGINE]
METADATA = (events.schema.metadata, projections.schema.metadata, engine.schema.metadata)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def connection(path: Path) -> Iterator[sa.Connection]:
    database = sa.create_engine(f"sqlite:///{path}")
    with database.connect() as opened:
        yield opened
    database.dispose()


def scripts(chain: Chain) -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", f"{chain.package}:migrations")
    return ScriptDirectory.from_config(config)


def set_standing(connection: sa.Connection, package: str, revision: str, compatible: str) -> None:
    """Pretend that another release has been here."""
    values = {"revision": revision, "compatible": compatible}
    connection.execute(sa.update(schemas).where(schemas.c.package == package).values(**values))
    connection.commit()


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.package)
def test_each_chain_has_one_head_and_the_release_knows_it(chain: Chain) -> None:
    assert scripts(chain).get_heads() == [chain.head]


def test_heads_are_the_constants_of_the_schemas() -> None:
    heads = [(chain.package, chain.head) for chain in CHAINS]
    assert heads == [
        ("events", events.schema.HEAD),
        ("projections", projections.schema.HEAD),
        ("engine", engine.schema.HEAD),
    ]
    assert CHAINS == (EVENTS_CHAIN, PROJECTIONS_CHAIN, ENGINE_CHAIN)


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.package)
def test_every_revision_says_which_code_still_works_on_it(chain: Chain) -> None:
    for script in scripts(chain).walk_revisions():
        assert len(script.revision) == len(chain.head)
        assert script.module.compatible <= script.revision


def test_two_heads_would_be_seen(tmp_path: Path) -> None:
    versions = tmp_path / "versions"
    versions.mkdir()
    for revision, down in (("0001", None), ("0002", "0001"), ("0003", "0001")):
        text = f"revision = {revision!r}\ndown_revision = {down!r}\ndef upgrade(): pass\n"
        (versions / f"r{revision}_x.py").write_text(text)
    assert len(ScriptDirectory(str(tmp_path)).get_heads()) == 2


def test_from_nothing_then_nothing_to_do(connection: sa.Connection) -> None:
    assert upgrade(connection, CHAINS) == ALL
    assert upgrade(connection, CHAINS) == []
    check(connection, CHAINS)
    assert connection.exec_driver_sql("PRAGMA application_id").scalar() == APPLICATION_ID


def test_chains_of_lower_packages_stand_alone(connection: sa.Connection) -> None:
    assert upgrade(connection, [EVENTS_CHAIN]) == ["events:0001"]
    with pytest.raises(SchemaMismatch, match="projections"):
        check(connection, CHAINS)
    assert upgrade(connection, CHAINS) == ALL[1:]


def test_the_indexes_of_stuck_calls_come_to_older_tables(connection: sa.Connection) -> None:
    before = [EVENTS_CHAIN, Chain("projections", "0001"), ENGINE_CHAIN]
    upgrade(connection, before)
    assert _indexes(connection) == {"tool_call_attempts_open", "tool_call_attempts_conversation"}
    assert upgrade(connection, CHAINS) == ["projections:0002"]
    wanted = {"tool_call_attempts_waiting", "tool_call_attempts_unconfirmed", "tool_call_attempts_conversation"}
    assert _indexes(connection) == wanted
    # The release before keeps running while a fleet is being upgraded.
    check(connection, before)
    assert upgrade(connection, before) == []


def _indexes(connection: sa.Connection) -> set[str | None]:
    return {index["name"] for index in sa.inspect(connection).get_indexes("tool_call_attempts")}


def test_a_current_database_costs_one_select_and_no_alembic(connection: sa.Connection) -> None:
    upgrade(connection, CHAINS)
    connection.commit()
    seen: list[str] = []
    sa.event.listen(connection, "before_cursor_execute", lambda _c, _cu, statement, *_: seen.append(statement))
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "alembic"}
    try:
        check(connection, CHAINS)
        assert upgrade(connection, CHAINS) == []
        assert not [name for name in sys.modules if name.partition(".")[0] == "alembic"]
    finally:
        sys.modules.update(hidden)
    assert [statement.split()[0] for statement in seen] == ["SELECT", "SELECT"]


def test_an_empty_file_is_named_with_the_command_that_helps(connection: sa.Connection, path: Path) -> None:
    with pytest.raises(SchemaMismatch, match="no calljournal tables yet: run `calljournal migrate --database") as error:
        check(connection, CHAINS)
    assert str(path) in str(error.value)


def test_old_code_works_on_a_newer_compatible_schema(connection: sa.Connection) -> None:
    upgrade(connection, CHAINS)
    set_standing(connection, "events", "0007", "0001")
    check(connection, CHAINS)
    assert upgrade(connection, CHAINS) == []
    row = connection.execute(sa.select(schemas).where(schemas.c.package == "events")).one()
    assert tuple(row) == ("events", "0007", "0001")


@pytest.mark.parametrize("function", [check, upgrade])
def test_a_newer_incompatible_schema_is_refused(
    connection: sa.Connection, function: Callable[[sa.Connection, Any], Any]
) -> None:
    upgrade(connection, CHAINS)
    set_standing(connection, "projections", "0009", "0003")
    with pytest.raises(SchemaMismatch, match=r"made by a newer calljournal .*projections tables at 0009.*upgrade"):
        function(connection, CHAINS)


def test_an_older_schema_is_brought_up(connection: sa.Connection) -> None:
    upgrade(connection, [EVENTS_CHAIN, PROJECTIONS_CHAIN])
    assert upgrade(connection, CHAINS) == ENGINE


def test_a_foreign_sqlite_file_is_refused_and_unchanged(path: Path, connection: sa.Connection) -> None:
    foreign = sqlite3.connect(path)
    foreign.execute("CREATE TABLE customers (id INTEGER)")
    foreign.commit()
    foreign.close()
    before = path.read_bytes()
    for function in (check, upgrade):
        with pytest.raises(SchemaMismatch, match=r"belongs to something else \(it has 'customers'") as error:
            function(connection, CHAINS)
        assert "\n" not in str(error.value)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_unchanged(path: Path, connection: sa.Connection) -> None:
    path.write_text("dear diary, " * 100)
    with pytest.raises(SchemaMismatch, match="is not a SQLite database"):
        upgrade(connection, CHAINS)
    assert path.read_text() == "dear diary, " * 100


def test_a_failing_migration_leaves_nothing(connection: sa.Connection) -> None:
    upgrade(connection, [EVENTS_CHAIN])
    connection.exec_driver_sql("CREATE TABLE notes (id INTEGER)")
    connection.commit()
    with pytest.raises(SchemaMismatch, match=r"cannot be migrated: .*notes"):
        upgrade(connection, CHAINS)
    assert not sa.inspect(connection).has_table("tool_call_attempts")


@pytest.mark.anyio
async def test_the_sqlite_store_refuses_a_foreign_file_unchanged(path: Path) -> None:
    foreign = sqlite3.connect(path)
    foreign.execute("CREATE TABLE customers (id INTEGER)")
    foreign.commit()
    foreign.close()
    before = path.read_bytes()
    with pytest.raises(SchemaMismatch, match="belongs to something else"):
        await open_sqlite(str(path), AttemptsProjection(), CHAINS)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.anyio
async def test_concurrent_upgrades_of_one_file_happen_once(path: Path) -> None:
    applied: list[list[str]] = []

    def work() -> None:
        database = sa.create_engine(f"sqlite:///{path}", connect_args={"timeout": 30})
        with database.connect() as opened:
            applied.append(upgrade(opened, CHAINS))
        database.dispose()

    async with anyio.create_task_group() as tasks:
        for _ in range(6):
            tasks.start_soon(anyio.to_thread.run_sync, work)
    assert sorted(applied) == [[]] * 5 + [ALL]


@pytest.mark.postgres
@pytest.mark.anyio
async def test_concurrent_upgrades_of_one_postgres_happen_once(empty_postgres_url: str) -> None:
    applied: list[list[str]] = []

    async def work() -> None:
        applied.append(await migrate_postgres(empty_postgres_url, CHAINS))

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(work)
    assert sorted(applied) == [[]] * 3 + [ALL]


@pytest.mark.postgres
@pytest.mark.anyio
async def test_postgres_is_never_migrated_by_opening_it(empty_postgres_url: str) -> None:
    with pytest.raises(SchemaMismatch, match="run `calljournal migrate --database postgresql://") as error:
        await open_postgres(empty_postgres_url, AttemptsProjection(), CHAINS)
    assert PASSWORD not in str(error.value)
    assert await migrate_postgres(empty_postgres_url, CHAINS) == ALL
    store = await open_postgres(empty_postgres_url, AttemptsProjection(), CHAINS)
    assert await store.head() == 0
    await store.aclose()


@pytest.mark.postgres
@pytest.mark.anyio
async def test_a_newer_postgres_is_refused_or_used(postgres_url: str) -> None:
    store = await open_postgres(postgres_url, AttemptsProjection(), CHAINS)
    newer = sa.update(schemas).where(schemas.c.package == "engine")
    await store.write([newer.values(revision="0009", compatible="0001")])
    await store.aclose()
    store = await open_postgres(postgres_url, AttemptsProjection(), CHAINS)
    await store.write([newer.values(compatible="0008")])
    await store.aclose()
    with pytest.raises(SchemaMismatch, match="made by a newer calljournal"):
        await open_postgres(postgres_url, AttemptsProjection(), CHAINS)
    with pytest.raises(SchemaMismatch, match="made by a newer calljournal"):
        await migrate_postgres(postgres_url, CHAINS)


@pytest.mark.postgres
@pytest.mark.anyio
async def test_a_postgres_with_a_table_of_our_name_is_refused(
    empty_postgres_url: str, postgres: PostgresServer
) -> None:
    await anyio.to_thread.run_sync(postgres.execute_on, empty_postgres_url, "CREATE TABLE tool_call_events (x integer)")
    with pytest.raises(SchemaMismatch, match="belongs to something else"):
        await migrate_postgres(empty_postgres_url, CHAINS)


@pytest.mark.anyio
async def test_an_unreachable_postgres_is_one_line_without_the_password() -> None:
    with pytest.raises(LogUnavailable, match=r"Postgres at 127.0.0.1:1, database 'x': no connection") as error:
        await migrate_postgres("postgresql://me:canary-pw@127.0.0.1:1/x", CHAINS)
    assert "canary-pw" not in str(error.value)
    assert "\n" not in str(error.value)
    assert isinstance(error.value.__cause__, OSError)


def _differences(connection: sa.Connection) -> list[Any]:
    """Return how the migrated tables differ from what the code believes, column types included."""
    found: list[Any] = []
    tables = {name: table for metadata in METADATA for name, table in metadata.tables.items()}
    options = {
        "compare_type": True,
        "include_object": lambda _item, name, kind, reflected, _to: kind != "table" or not reflected or name in tables,
    }
    for metadata in METADATA:
        context = MigrationContext.configure(connection, opts=options)
        found += [
            difference
            for difference in compare_metadata(context, metadata)
            if not (difference[0] in ("remove_table", "remove_index") and difference[1] is not None)
        ]
    inspector = sa.inspect(connection)
    for name, table in tables.items():
        columns = {column["name"]: column["nullable"] for column in inspector.get_columns(name)}
        if columns != {column.name: column.nullable for column in table.columns}:
            found.append((name, columns))
        keys = inspector.get_pk_constraint(name)["constrained_columns"]
        if keys != [column.name for column in table.primary_key.columns]:
            found.append((name, keys))
        indexes = {index["name"] for index in inspector.get_indexes(name) if not index["unique"]}
        if indexes != {index.name for index in table.indexes}:
            found.append((name, indexes))
    return found


def test_the_migrated_sqlite_is_what_the_code_believes(connection: sa.Connection) -> None:
    upgrade(connection, CHAINS)
    assert _differences(connection) == []


@pytest.mark.postgres
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_migrated_postgres_is_what_the_code_believes(postgres_url: str) -> None:
    database = create_async_engine(postgres_url.replace("postgresql:", "postgresql+asyncpg:"))
    async with database.connect() as connection:
        assert await connection.run_sync(_differences) == []
    await database.dispose()


APPEND_ONLY = {
    "tool_call_events": "(1, 1, 1, 'u', 'k', 'i', 't', 1, {now}, '{{}}')",
    "tool_call_streams": "('u', 'k', 1)",
    "tool_call_payloads": "('u', 'd', 1, 'c')",
}
NOW = "'2026-01-01T00:00:00.000000+00:00'"


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_sqlite_refuses_to_change_what_was_appended(connection: sa.Connection, table: str) -> None:
    upgrade(connection, CHAINS)
    row = APPEND_ONLY[table].format(now=NOW)
    connection.exec_driver_sql(f"INSERT INTO {table} VALUES {row}")
    connection.commit()
    column = sa.inspect(connection).get_columns(table)[-1]["name"]
    for statement in (
        f"UPDATE {table} SET {column} = {column}",
        f"DELETE FROM {table}",
        f"INSERT OR REPLACE INTO {table} VALUES {row}",
        f"INSERT OR REPLACE INTO {table} VALUES {row.replace(', 1,', ', 2,', 1)}",
    ):
        with pytest.raises(sa.exc.DBAPIError, match="the log is append-only"):
            connection.exec_driver_sql(statement)
        connection.rollback()
    assert connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 1


def test_sqlite_refuses_a_position_or_version_twice(connection: sa.Connection) -> None:
    upgrade(connection, CHAINS)
    insert = "INSERT OR REPLACE INTO tool_call_events VALUES ({}, {}, {}, 'u', 'k', 'i', 't', 1, {}, '{{}}')"
    connection.exec_driver_sql(insert.format(5, 5, 1, NOW))
    for position, stream, version in ((5, 9, 1), (6, 5, 1), (4, 4, 1)):
        with pytest.raises(sa.exc.DBAPIError, match="the log is append-only"):
            connection.exec_driver_sql(insert.format(position, stream, version, NOW))
    connection.exec_driver_sql(insert.format(6, 5, 2, NOW))


@pytest.mark.postgres
@pytest.mark.anyio
@pytest.mark.parametrize("table", [*APPEND_ONLY, "tool_call_seals"])
@pytest.mark.parametrize("statement", ["UPDATE {} SET {} = {}", "DELETE FROM {}", "TRUNCATE {} CASCADE"])
async def test_postgres_refuses_to_change_what_was_appended(postgres_url: str, table: str, statement: str) -> None:
    column = events.schema.metadata.tables[table].columns.keys()[-1]
    store = await open_postgres(postgres_url, AttemptsProjection(), CHAINS)
    with pytest.raises(LogUnavailable, match="the log is append-only"):
        await store.write([sa.text(statement.format(table, column, column))])
    await store.aclose()
