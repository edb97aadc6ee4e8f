"""The Postgres store, through asyncpg: appends by one server-side function, everything else by SQLAlchemy Core.

Commits go over one connection of their own, one round trip a batch; reads and other writes have a small pool, of which
nothing is held while somebody waits. All connections live on asyncio's side of the bridge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import anyio
import msgspec
import sqlalchemy

from events.bridge import Bridge, open_bridge
from events.migration import Chain, check, epoch_of, upgrade
from events.postgres_committer import Committer
from events.postgres_connection import Address, is_pooled
from events.postgres_pool import Pool
from events.postgres_wake import Wake
from events.store import Appended, InlineProjection, Outcome, Unit

__all__ = ("PostgresDurability", "PostgresStore", "migrate_postgres", "open_postgres")

_POLL = 0.5
T = TypeVar("T")
_HEAD = sqlalchemy.text("SELECT calljournal_head_1()")


class PostgresDurability(msgspec.Struct, frozen=True):
    """What the server says of the settings that decide whether a commit survives a power cut."""

    fsync: str
    synchronous_commit: str


class _Connections(msgspec.Struct, frozen=True):
    """What lives on asyncio's side."""

    address: Address
    committer: Committer
    pool: Pool
    wake: Wake

    async def aclose(self) -> None:
        await self.wake.aclose()
        await self.committer.aclose()
        await self.pool.aclose()


class PostgresStore:
    """One Postgres database as a ``Store``; made by :func:`open_postgres`."""

    dialect = "postgresql"

    def __init__(self, bridge: Bridge, connections: _Connections) -> None:
        self._bridge = bridge
        self._connections = connections
        self._closed = False

    def __repr__(self) -> str:
        address = self._connections.address
        return f"<PostgresStore {address.place}{', pooled' * address.pooled}{', closed' * self._closed}>"

    @property
    def epoch(self) -> int:
        """See ``Store.epoch``."""
        return self._connections.committer.epoch

    @property
    def url(self) -> str | None:
        """See ``Reachable.url``."""
        return self._connections.address.url

    async def commit(self, units: Sequence[Unit]) -> Sequence[Outcome]:
        """See ``Store.commit``. A lost connection is replaced and the units sent again for 5 s."""
        return await self._bridge.finish(self._commit, units)

    async def _commit(self, units: Sequence[Unit]) -> Sequence[Outcome]:
        outcomes = await self._connections.committer.commit(units)
        last = max((_last_position(outcome) for outcome in outcomes), default=0)
        if last:
            self._connections.wake.appended(last)
        return outcomes

    async def read(self, statement: Any) -> Sequence[Any]:
        """See ``Store.read``."""
        return await self._bridge.call(self._connections.pool.read, statement)

    async def write(self, statements: Sequence[Any]) -> list[int]:
        """See ``Store.write``.

        :raises Refused: if the database cannot store a value, or a constraint forbids it
        """

        def run(connection: sqlalchemy.Connection) -> list[int]:
            return [connection.execute(statement).rowcount for statement in statements]

        return await self.transact(run)

    async def transact(self, work: Callable[[Any], T]) -> T:
        """See ``Store.transact``.

        :raises Refused: if the database cannot store a value, or a constraint forbids it
        """
        return await self._bridge.finish(self._connections.pool.transact, work)

    async def head(self) -> int:
        """See ``Store.head``. Holes of rolled-back appends count as settled."""
        return await self._bridge.call(self._head)

    async def _head(self) -> int:
        rows = await self._connections.pool.read(_HEAD)
        return int(rows[0][0])

    async def wait(self, after: int, timeout: float) -> None:
        """See ``Store.wait``: LISTEN where it works, a look at the log every 0.5 s besides. Holds no connection.

        :raises LogUnavailable: if the log cannot be read
        """
        await self._bridge.call(self._wait, after, timeout)

    async def _wait(self, after: int, timeout: float) -> None:
        wake = self._connections.wake
        with anyio.move_on_after(timeout):
            # Listen, then look, then wait: what commits before LISTEN is up is announced to nobody.
            await wake.listen()
            while True:
                news = wake.news
                if await self._head() > after:
                    return
                with anyio.move_on_after(_POLL):
                    await news.wait()

    async def durability(self) -> PostgresDurability:
        """Return the settings that decide whether a commit survives a power cut, as the server reports them."""
        return await self._bridge.call(self._durability)

    async def _durability(self) -> PostgresDurability:
        connection = await self._connections.committer.connection()
        asked = "SELECT current_setting('fsync'), current_setting('synchronous_commit')"
        row = await connection.fetchrow(asked)
        assert row is not None
        return PostgresDurability(row[0], row[1])

    async def aclose(self) -> None:
        """See ``Store.aclose``."""
        if self._closed:
            return
        self._closed = True
        with anyio.CancelScope(shield=True):
            try:
                await self._bridge.call(self._connections.aclose)
            finally:
                await self._bridge.aclose()


def _last_position(outcome: Outcome) -> int:
    if not isinstance(outcome, tuple):
        return 0
    return max((entry.positions[-1] for entry in outcome if isinstance(entry, Appended) and entry.positions), default=0)


async def open_postgres(url: str, projection: InlineProjection, chains: Sequence[Chain]) -> PostgresStore:
    """Connect to a migrated database.

    ``?pooled=1`` in the URL says that a pooler in transaction mode is between (one that refuses or forgets session
    settings is recognised): then no statement outlives its transaction, and readers are woken by polling.

    :raises Refused: if the URL cannot be read
    :raises LogUnavailable: if the database cannot be reached
    :raises SchemaMismatch: if its tables do not fit this release; the text names the command that helps
    """
    address = Address.of(url)
    bridge = await open_bridge()
    try:
        connections = await bridge.call(_connect, address, projection, chains)
    except BaseException:
        await bridge.aclose()
        raise
    return PostgresStore(bridge, connections)


async def _connect(address: Address, projection: InlineProjection, chains: Sequence[Chain]) -> _Connections:
    address = msgspec.structs.replace(address, pooled=await is_pooled(address))
    pool = Pool(address)
    committer = Committer(address, projection, epoch_of(chains))
    connections = _Connections(address, committer, pool, Wake(address, listens=not address.pooled))
    try:
        await pool.run(check, chains)
        await connections.committer.connection()
    except BaseException:
        with anyio.CancelScope(shield=True):
            await connections.aclose()
        raise
    return connections


async def migrate_postgres(url: str, chains: Sequence[Chain]) -> list[str]:
    """Bring a database's tables up to this release and return the revisions applied; see ``migration.upgrade``.

    :raises LogUnavailable: if the database cannot be reached
    :raises SchemaMismatch: if it is foreign, or made by a newer release
    """
    bridge = await open_bridge()
    try:
        return await bridge.finish(_migrate, Address.of(url), chains)
    finally:
        await bridge.aclose()


async def _migrate(address: Address, chains: Sequence[Chain]) -> list[str]:
    pool = Pool(msgspec.structs.replace(address, pooled=await is_pooled(address)))
    try:
        return await pool.run(upgrade, chains)
    finally:
        await pool.aclose()
