"""The databases of an engine's rows: a connection for each call, few per row at a time, never to the journal's own."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import anyio
import asyncpg
import sqlalchemy

from engine.net.resolver import system_resolver
from engine.services import Services
from engine.sql.allowance import Allowance
from engine.sql.connecting import Link, linked
from engine.sql.dsn import Dsn
from engine.sql.errors import SqlError
from engine.sql.host_policy import Place, checked_place
from engine.sql.identity import IDENTITY, SYSTEM, Identity
from events.bridge import Bridge, open_bridge
from events.errors import JournalError

__all__ = ("Databases", "databases")

T = TypeVar("T")
Work: TypeAlias = Callable[[Link, Allowance], Awaitable[T]]

_AT_ONCE: Final = 4


class Databases:
    """Shared by an engine's tools. Nothing of a call is left for another: no connection, no setting, no lock."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._bridge: Bridge | None = None
        self._journal: Identity | None = None
        self._limits: WeakValueDictionary[tuple[str | None, str], anyio.CapacityLimiter] = WeakValueDictionary()

    def __repr__(self) -> str:
        return f"<Databases {'open' if self._bridge else 'unused'}, {len(self._limits)} rows at work>"

    async def use(
        self,
        row: tuple[str | None, str],
        dsn: Dsn,
        allowance: Allowance,
        work: Work[T],
    ) -> T:
        """Connect, and await ``work(link, allowance)`` on asyncio's side; where it must end, its statement does too.

        :param row: the owner's and the row's ids; a row has few connections at a time
        :raises SqlError: if there is no connection, or the work fails
        """
        limit = self._limits.setdefault(row, anyio.CapacityLimiter(_AT_ONCE))
        with anyio.move_on_after(allowance.total):
            async with limit:
                services = self._services
                place = await checked_place(dsn, services.net, services.resolver or system_resolver)
                journal = await self._journal_identity()
                if self._bridge is None:
                    self._bridge = await open_bridge()
                return await self._bridge.call(_used, place, services.tls, allowance, journal, work)
        raise SqlError(f"it took longer than {allowance.total:.3g} s")

    async def _journal_identity(self) -> Identity | None:
        store = self._services.store
        if store is None or store.dialect != "postgresql":
            return None
        if self._journal is None:
            name, number, started = (await store.read(sqlalchemy.text(IDENTITY)))[0]
            try:
                system: str | None = (await store.read(sqlalchemy.text(SYSTEM)))[0][0]
            except JournalError:
                system = None
            self._journal = Identity(name, number, started, system)
        return self._journal

    async def aclose(self) -> None:
        """End the bridge's thread, if there is one."""
        if self._bridge is not None:
            await self._bridge.aclose()


def databases(services: Services) -> Databases:
    """Make them; for ``services.shared``."""
    return Databases(services)


async def _used(
    place: Place,
    authorities: ssl.SSLContext | None,
    allowance: Allowance,
    journal: Identity | None,
    work: Work[T],
) -> T:
    async with linked(place, authorities, allowance.connect) as link:
        if journal is not None:
            await _require_other(link, journal)
        return await work(link, allowance)
    raise AssertionError("a connection's end swallows nothing")


async def _require_other(link: Link, journal: Identity) -> None:
    try:
        there: Any = await link.connection.fetchrow(IDENTITY)
        system = await _system(link)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        raise SqlError("the server does not say which database this is, and it might be the journal's") from error
    if Identity(there[0], there[1], there[2], system).is_same(journal):
        raise SqlError("this is the journal's own database, which no tool may open")


async def _system(link: Link) -> str | None:
    try:
        system: str | None = await link.connection.fetchval(SYSTEM)
    except asyncpg.PostgresError:
        return None
    return system
