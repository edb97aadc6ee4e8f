"""Warm connections, and how many there may be.

A connection in use belongs to its request alone; it comes back only when its response was read to the end, and is
closed in every other case. So a request that is cancelled, wherever it stands, takes neither a connection nor a place
with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, Protocol, TypeVar

import anyio
import msgspec

from engine.net.dialling import Closeable, closed

__all__ = ("IDLE", "Connection", "Loan", "Pool")

IDLE: Final = 5.0
"""Seconds that a connection stays open unused."""

_WARM: Final = 20


class Connection(Closeable, Protocol):
    """What a pool must know of a connection."""

    def is_idle(self) -> bool:
        """Whether its response was read to the end, and it can take another request."""

    def has_expired(self) -> bool:
        """Whether it has been idle for too long, or the server has closed it."""


C = TypeVar("C", bound=Connection)


class _Idle(msgspec.Struct, Generic[C], frozen=True):
    key: Hashable
    connection: C
    since: float


class Pool(Generic[C]):
    """At most so many connections; some of them stay open after use, for whoever asks with the same key."""

    def __init__(self, most: int) -> None:
        """Open nothing yet."""
        self._most = most
        self._places = anyio.Semaphore(most, fast_acquire=True)
        self._idle: list[_Idle[C]] = []
        self._is_closed = False

    def __repr__(self) -> str:
        return f"<Pool {self._most - self._places.value} in use, {len(self._idle)} idle>"

    async def borrow(self, key: Hashable, connect: Callable[[], Awaitable[C]], *, fresh: bool = False) -> Loan[C]:
        """Return a connection, when there is a place for one.

        :param key: all that must be the same for a connection to serve again
        :param fresh: whether it must be a new one
        """
        await self._places.acquire()
        try:
            warm = None if fresh else await self._taken(key)
            connection = warm or await self._opened(connect)
        except BaseException:
            self._places.release()
            raise
        return Loan(self, key, connection, is_warm=warm is not None)

    async def _taken(self, key: Hashable) -> C | None:
        while idle := next((each for each in reversed(self._idle) if each.key == key), None):
            self._idle.remove(idle)
            if not idle.connection.has_expired():
                return idle.connection
            await closed(idle.connection)
        return None

    async def _opened(self, connect: Callable[[], Awaitable[C]]) -> C:
        await self._keep(self._places.value)
        return await connect()

    async def _keep(self, most: int) -> None:
        """Close idle connections, the oldest first, until there are at most so many, and none that is too old."""
        expired = anyio.current_time() - IDLE
        while self._idle and (len(self._idle) > most or self._idle[0].since < expired):
            await closed(self._idle.pop(0).connection)

    async def take_back(self, key: Hashable, connection: C) -> None:
        """Take a connection back from a loan, for the next request if it can serve one."""
        try:
            if self._is_closed or not connection.is_idle():
                await closed(connection)
            else:
                self._idle.append(_Idle(key, connection, anyio.current_time()))
                await self._keep(_WARM)
        finally:
            self._places.release()

    async def aclose(self) -> None:
        """Close what is idle; what is in use is closed when it comes back."""
        self._is_closed = True
        await self._keep(0)


class Loan(Generic[C]):
    """A connection in use.

    :ivar is_warm: whether it has served before
    """

    def __init__(self, pool: Pool[C], key: Hashable, connection: C, *, is_warm: bool) -> None:
        self.connection = connection
        self.is_warm = is_warm
        self._key = key
        self._pool: Pool[C] | None = pool

    async def settle(self) -> None:
        """Give it back; a second time does nothing."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.take_back(self._key, self.connection)
