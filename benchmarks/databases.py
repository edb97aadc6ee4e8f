"""Fresh databases to measure on: an SQLite file each, or a database of a throw-away Postgres server."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import anyio

from benchmarks.bare_postgres import BarePostgres
from benchmarks.bare_sqlite import BareSqlite
from engine.migration import CHAINS
from events.opening import open_log
from projections.attempts import AttemptsProjection
from tests.postgres_server import PostgresServer, postgres_server

__all__ = ("Bare", "Database", "PostgresDatabase", "SqliteDatabase", "databases", "on_disk")


class Bare(Protocol):
    """The database without the product; see ``BareSqlite`` and ``BarePostgres``."""

    def durability(self) -> str: ...
    def commit_times(self, seconds: float) -> list[float]: ...
    def batches(self, size: int, seconds: float) -> float: ...
    def close(self) -> None: ...


class Database(Protocol):
    """A kind of database that can be had fresh, with the product's tables."""

    @property
    def name(self) -> str: ...
    def fresh(self) -> str:
        """Return the URL of an empty journal."""
        ...

    def bare(self, url: str) -> Bare: ...
    def drop(self, url: str) -> None: ...


class SqliteDatabase:
    """Files in a folder."""

    name = "SQLite"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._template = folder / "template.db"
        self._count = 0
        anyio.run(_migrate_sqlite, f"sqlite:///{self._template}")

    def fresh(self) -> str:
        """Return the URL of an empty journal."""
        self._count += 1
        path = self._folder / f"journal-{self._count}.db"
        shutil.copy(self._template, path)
        return f"sqlite:///{path}"

    def bare(self, url: str) -> Bare:
        """Return the database without the product."""
        return BareSqlite(url.removeprefix("sqlite:///"))

    def drop(self, url: str) -> None:
        """Delete the file."""
        for suffix in ("", "-wal", "-shm"):
            Path(url.removeprefix("sqlite:///") + suffix).unlink(missing_ok=True)


class PostgresDatabase:
    """Databases of one server, copied from a migrated template."""

    name = "Postgres"

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        template = server.create_database()
        anyio.run(_migrate_postgres, template)
        self._template = template.rpartition("/")[2]

    def fresh(self) -> str:
        """Return the URL of an empty journal."""
        return self._server.create_database(self._template)

    def bare(self, url: str) -> Bare:
        """Return the database without the product."""
        return BarePostgres(url)

    def drop(self, url: str) -> None:
        """Drop the database."""
        self._server.drop_database(url)


async def _migrate_sqlite(url: str) -> None:
    await (await open_log(url, AttemptsProjection(), CHAINS)).aclose()


async def _migrate_postgres(url: str) -> None:
    from events.postgres import migrate_postgres

    await migrate_postgres(url, CHAINS)


def on_disk() -> Path:
    """Return a folder for temporary files that lies on a disk: in memory nothing is ever made durable."""
    lasting = Path("/var/tmp")
    return lasting if lasting.is_dir() else Path(tempfile.gettempdir())


@contextmanager
def databases(folder: Path | None, names: tuple[str, ...]) -> Iterator[list[Database]]:
    """Open the wanted kinds of database; what they hold is deleted at the end.

    :param folder: where to put SQLite's files; None: :func:`on_disk`
    :param names: ``sqlite``, ``postgres``
    """
    root = Path(tempfile.mkdtemp(prefix="calljournal-bench-", dir=folder or on_disk()))
    try:
        found: list[Database] = [SqliteDatabase(root)] if "sqlite" in names else []
        if "postgres" not in names:
            yield found
            return
        with postgres_server(on_disk=True) as server:
            yield [*found, PostgresDatabase(server)]
    finally:
        shutil.rmtree(root, ignore_errors=True)
