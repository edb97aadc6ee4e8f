"""A small pool of connections for everything but appends: SQLAlchemy Core over asyncpg.

Runs on asyncio's side of the bridge. No connection is held between two calls.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import anyio
import asyncpg
import sqlalchemy
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from events.bridge import Departures
from events.errors import JournalError, LogUnavailable
from events.postgres_connection import FAILURES, Address, connect, is_lost, translated

__all__ = ("Pool",)

_SIZE = 5
_CHECKOUT_TIMEOUT = 10.0
_PATIENCE = 5.0
_FAILURES = (DBAPIError, PoolTimeout, *FAILURES)
T = TypeVar("T")


class Pool:
    """Runs selects and other statements of SQLAlchemy Core."""

    def __init__(self, address: Address) -> None:
        async def creator(**_: Any) -> asyncpg.Connection:
            return await connect(address)

        self._address = address
        self._departures = Departures()
        options: dict[str, Any] = {"async_creator_fn": creator}
        if address.pooled:
            # Unnamed statements only: a named one stays behind on a server connection that is somebody else's next.
            options |= {"prepared_statement_cache_size": 0, "prepared_statement_name_func": str}
        self._engine = create_async_engine(
            _named(address),
            connect_args=options,
            pool_size=_SIZE,
            max_overflow=0,
            pool_timeout=_CHECKOUT_TIMEOUT,
        )
        level = "READ COMMITTED" if address.pooled else "AUTOCOMMIT"
        self._reader = self._engine.execution_options(isolation_level=level)

    def __repr__(self) -> str:
        return f"<Pool {self._engine.pool.status()}>"

    async def read(self, statement: Any) -> Sequence[Any]:
        """Run a select and return its rows; again over another connection where one was lost.

        Cancelled, it returns at once; the select ends by itself.

        :raises LogUnavailable: if the database cannot be read
        """

        async def select() -> Sequence[Any]:
            async with self._reader.connect() as connection:
                return (await connection.execute(statement)).fetchall()

        return await self._departures.run(self._patiently(select))

    async def transact(self, work: Callable[[sqlalchemy.Connection], T]) -> T:
        """Run ``work(connection)`` in one transaction; what it raises rolls back.

        :raises Refused: if the database cannot store a value, or a constraint forbids it
        :raises LogUnavailable: if nothing was written, or that is not known
        """
        connection = await self._patiently(self._begin)
        try:
            result = await connection.run_sync(work)
            await connection.commit()
        except _FAILURES as error:
            raise self._described(error) from error
        finally:
            await connection.close()
        return result

    async def _begin(self) -> AsyncConnection:
        connection = await self._engine.connect()
        try:
            # Whether the server is still there is found out before anything that must not be done twice.
            await connection.exec_driver_sql("SELECT 1")
        except BaseException:
            await connection.close()
            raise
        return connection

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Run a function that takes a sync SQLAlchemy connection first.

        :raises LogUnavailable: if the database cannot be reached
        """

        async def work() -> T:
            async with self._engine.connect() as connection:
                return await connection.run_sync(function, *args)

        return await self._patiently(work, patience=0)

    async def _patiently(self, work: Callable[[], Coroutine[Any, Any, T]], patience: float = _PATIENCE) -> T:
        deadline = anyio.current_time() + patience
        pause = 0.01
        while True:
            try:
                return await work()
            except LogUnavailable as error:
                if not (error.__cause__ and is_lost(error.__cause__)) or anyio.current_time() + pause > deadline:
                    raise
            except _FAILURES as error:
                if not is_lost(_cause(error)) or anyio.current_time() + pause > deadline:
                    raise self._described(error) from error
            await anyio.sleep(pause)
            pause = min(pause * 2, 0.5)

    def _described(self, error: Exception) -> JournalError:
        if isinstance(error, PoolTimeout):
            return LogUnavailable(f"{self._address.place}: all {_SIZE} connections are busy; try again")
        return translated(self._address, _cause(error))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._departures.aclose(_PATIENCE)
        await self._engine.dispose()


def _named(address: Address) -> sqlalchemy.URL:
    """Return a URL that says which database it is; connecting goes by the address alone."""
    parts = urlsplit(address.dsn)
    try:
        return sqlalchemy.make_url(address.dsn).set(drivername="postgresql+asyncpg")
    except ValueError:
        # Several hosts: the driver knows what that means, SQLAlchemy does not.
        return sqlalchemy.URL.create("postgresql+asyncpg", database=parts.path.removeprefix("/"))


def _cause(error: Exception) -> Exception:
    """Return the driver's own error under SQLAlchemy's."""
    original: BaseException | None = getattr(error, "orig", None)
    if original is None:
        return error
    return original.__cause__ if isinstance(original.__cause__, Exception) else error
