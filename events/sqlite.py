"""The SQLite store: a file (WAL, synchronous=FULL) or memory; the embedded default (DESIGN 7).

One writer connection, used by one thread at a time; reads run in a few reader threads. No aiosqlite: it leaks a task
per cancelled statement.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import msgspec
import sqlalchemy
from sqlalchemy.pool import QueuePool, StaticPool

from events.errors import LogUnavailable, Refused, SchemaMismatch
from events.migration import Chain, epoch_of, upgrade
from events.sqlite_lane import Lane
from events.sqlite_writer import SqliteWriter
from events.store import AS_STORED, InlineProjection, Unit, Verdict

__all__ = ("Durability", "SqliteStore", "migrate_sqlite", "open_sqlite")

_READERS = 4
_POLL = 0.05
T = TypeVar("T")

_ADVICE = (
    ("disk is full", "the disk is full; free some space and try again"),
    ("readonly", "the file (or its folder) is read-only; make it writable or give another one"),
    ("not a database", "the file is not an SQLite database; give another path"),
    ("malformed", "the file is damaged; restore it from a backup"),
    ("unable to open", "the file cannot be opened; check that its folder exists and may be written to"),
    ("disk I/O", "the disk refuses (disk I/O error); look at its space, its limits and its health"),
    ("locked", "another process holds the database locked; try again, or stop the other process"),
)


def unavailable(path: str, error: Exception) -> LogUnavailable:
    """Return the one-line error for a failure of the database file."""
    return LogUnavailable(f"SQLite database {path}: {_advice(error) or _text(error)}")


def _unstorable() -> Refused:
    # As the other store says it: a name like this is nobody's.
    return Refused("the database cannot store this (half of a surrogate pair); remove what is not text")


def _text(error: BaseException) -> str:
    return str(getattr(error, "orig", None) or error)


def _advice(error: BaseException) -> str | None:
    text = _text(error)
    return next((advice for part, advice in _ADVICE if part in text), None)


class Durability(msgspec.Struct, frozen=True):
    """What the database says of its own durability settings."""

    journal_mode: str
    synchronous: str


class SqliteStore:
    """One SQLite database as a ``Store``."""

    dialect = "sqlite"

    def __init__(
        self, path: str, connection: sqlite3.Connection, projection: InlineProjection, epoch: str | None = None
    ) -> None:
        self.path = path
        self._connection = connection
        self._writer = SqliteWriter(connection, projection, epoch)
        self._lane = Lane()
        self._write_engine = sqlalchemy.create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
        self._memory = path == ":memory:"
        self._readers = anyio.CapacityLimiter(_READERS)
        self._read_engine = self._write_engine if self._memory else _read_engine(path)
        self._watch = None if self._memory else _connect(path)
        self._news = anyio.Event()
        self._closed = False

    def __repr__(self) -> str:
        return f"<SqliteStore {self.path}{' closed' if self._closed else ''}>"

    @property
    def epoch(self) -> int:
        """See ``Store.epoch``."""
        return self._writer.epoch

    @property
    def url(self) -> str | None:
        """See ``Reachable.url``."""
        return None if self._memory else f"sqlite:///{Path(self.path).absolute()}"

    async def commit(self, units: Sequence[Unit]) -> list[Verdict]:
        """See ``Store.commit``."""
        try:
            verdicts = await self._in_lane(self._writer.commit, units)
        except sqlite3.Error as error:
            raise unavailable(self.path, error) from error
        news, self._news = self._news, anyio.Event()
        news.set()
        return verdicts

    async def _in_lane(self, work: Callable[..., T], *args: Any) -> T:
        if self._lane.closed:
            raise LogUnavailable(f"SQLite database {self.path}: it has been closed")
        return await self._lane.run(partial(work, *args))

    async def read(self, statement: Any) -> Sequence[Any]:
        """See ``Store.read``."""
        if self._memory:
            return await self._in_lane(self._read, statement)
        return await anyio.to_thread.run_sync(self._read, statement, limiter=self._readers)

    def _read(self, statement: Any) -> Sequence[Any]:
        try:
            with self._read_engine.connect() as connection:
                found = connection.execute(statement)
                # A row object per record would cost more than reading it.
                wants_tuples = statement.get_execution_options().get(AS_STORED) and found.cursor is not None
                return found.cursor.fetchall() if wants_tuples else found.fetchall()
        except UnicodeEncodeError as error:
            raise _unstorable() from error
        except (sqlalchemy.exc.DBAPIError, sqlite3.Error) as error:
            raise unavailable(self.path, error) from error

    async def write(self, statements: Sequence[Any]) -> list[int]:
        """See ``Store.write``."""

        def run(connection: sqlalchemy.Connection) -> list[int]:
            return [connection.execute(statement).rowcount for statement in statements]

        return await self.transact(run)

    async def transact(self, work: Callable[[Any], T]) -> T:
        """See ``Store.transact``."""
        return await self._in_lane(self._transact, work)

    def _transact(self, work: Callable[[Any], T]) -> T:
        try:
            with self._write_engine.connect() as connection:
                return self._transaction(connection, work)
        except UnicodeEncodeError as error:
            raise _unstorable() from error
        except (sqlalchemy.exc.OperationalError, sqlalchemy.exc.DatabaseError, sqlite3.Error) as error:
            raise unavailable(self.path, error) from error

    def _transaction(self, connection: sqlalchemy.Connection, work: Callable[[Any], T]) -> T:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            result = work(connection)
            connection.exec_driver_sql("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                connection.exec_driver_sql("ROLLBACK")
            raise
        return result

    async def head(self) -> int:
        """See ``Store.head``: with one writer at a time, every position up to the last is settled."""
        rows = await self.read(sqlalchemy.text("SELECT coalesce(max(position), 0) FROM tool_call_events"))
        return int(rows[0][0])

    async def wait(self, after: int, timeout: float) -> None:
        """See ``Store.wait``: a signal within the process, ``data_version`` for other processes.

        :raises LogUnavailable: if the log cannot be read
        """
        with anyio.move_on_after(timeout):
            while True:
                # Taken before the log is looked at: what is committed in between is news.
                news, version = self._news, self._data_version()
                if await self.head() > after:
                    return
                while not news.is_set() and self._data_version() == version:
                    with anyio.move_on_after(_POLL):
                        await news.wait()

    def _data_version(self) -> int:
        if self._watch is None:
            return 0
        # Three microseconds: not worth a thread.
        return int(self._watch.execute("PRAGMA data_version").fetchone()[0])

    async def durability(self) -> Durability:
        """Return the settings that decide whether a commit survives a power cut, as the database reports them."""

        def ask() -> Durability:
            mode = str(self._connection.execute("PRAGMA journal_mode").fetchone()[0])
            level = int(self._connection.execute("PRAGMA synchronous").fetchone()[0])
            return Durability(mode, ("off", "normal", "full", "extra")[level])

        return await self._in_lane(ask)

    async def aclose(self) -> None:
        """See ``Store.aclose``."""
        if self._closed:
            return
        self._closed = True
        with anyio.CancelScope(shield=True):
            await self._lane.run(self._close)
        self._lane.close()

    def _close(self) -> None:
        self._read_engine.dispose()
        self._write_engine.dispose()
        if self._watch is not None:
            self._watch.close()
        self._connection.close()


def _read_engine(path: str) -> sqlalchemy.Engine:
    def connect() -> sqlite3.Connection:
        connection = _connect(path)
        connection.execute("PRAGMA query_only=ON")
        return connection

    return sqlalchemy.create_engine(
        "sqlite://",
        creator=connect,
        poolclass=QueuePool,
        pool_size=_READERS,
        max_overflow=0,
        isolation_level="AUTOCOMMIT",
    )


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    # The wait is long: several processes on one file are served in no fair order.
    connection.execute("PRAGMA busy_timeout=30000")
    return connection


def _prepare(path: str, chains: Sequence[Chain]) -> tuple[sqlite3.Connection, list[str]]:
    if path != ":memory:" and not Path(path).absolute().parent.is_dir():
        raise LogUnavailable(f"SQLite database {path}: its folder does not exist; make it first, or give another path")
    connection = _connect(path)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        engine = sqlalchemy.create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
        with engine.connect() as migrating:
            applied = upgrade(migrating, chains)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA recursive_triggers=ON")
        connection.execute("PRAGMA wal_autocheckpoint=8000")
    except BaseException:
        connection.close()
        raise
    return connection, applied


async def open_sqlite(path: str, projection: InlineProjection, chains: Sequence[Chain]) -> SqliteStore:
    """Open (and where needed make or upgrade) the database at ``path``; ``:memory:`` for one that is never stored.

    :raises LogUnavailable: if the file cannot be opened or written
    :raises SchemaMismatch: if it belongs to another application, or to a newer release that this one cannot serve
    """
    connection, _ = await _prepared(path, chains)
    return SqliteStore(path, connection, projection, epoch_of(chains))


async def migrate_sqlite(path: str, chains: Sequence[Chain]) -> list[str]:
    """Make the database or bring it up to this release, and return the revisions applied; see ``migration.upgrade``.

    :raises LogUnavailable: if the file cannot be opened or written
    :raises SchemaMismatch: if it belongs to another application, or to a newer release that this one cannot serve
    """
    connection, applied = await _prepared(path, chains)
    connection.close()
    return applied


async def _prepared(path: str, chains: Sequence[Chain]) -> tuple[sqlite3.Connection, list[str]]:
    try:
        return await anyio.to_thread.run_sync(_prepare, path, chains)
    except SchemaMismatch as error:
        cause = error.__cause__
        if isinstance(cause, sqlalchemy.exc.OperationalError) and _advice(cause):
            # A full disk or a read-only file is no matter of its tables.
            raise unavailable(path, cause) from cause
        raise
    except (sqlite3.Error, sqlalchemy.exc.DBAPIError) as error:
        raise unavailable(path, error) from error
