"""Waking readers over Postgres: LISTEN for who waits, NOTIFY after commits, both on one connection of their own.

Hints only: the table is the truth. Everything here runs on asyncio's side of the bridge.
"""

from __future__ import annotations

from typing import Any

import anyio
import asyncpg

from events.bridge import Background
from events.errors import LogUnavailable
from events.postgres_connection import FAILURES, Address, connect

__all__ = ("CHANNEL", "Wake")

CHANNEL = "calljournal"
_QUIET = 0.01
_RETRY = 1.0


class Wake:
    """One process's end of the wake-up channel.

    A position is announced at once if the last announcement is 10 ms old, else together with those that follow, never
    inside an append's transaction (there it would take a lock that all of the server's databases share).
    """

    def __init__(self, address: Address, *, listens: bool) -> None:
        self._address = address
        self._listens = listens
        self._news = anyio.Event()
        self._connection: asyncpg.Connection | None = None
        self._lock = anyio.Lock()
        self._position = 0
        self._announced = 0
        self._announcer: Background | None = None
        self._retry_at = 0.0

    def __repr__(self) -> str:
        state = "polling" if not self._listens else "listening" if self._connected() else "not connected"
        return f"<Wake {state}, announced {self._announced}>"

    @property
    def news(self) -> anyio.Event:
        """Set at the next sign of a new position; take it before looking at the log."""
        return self._news

    async def listen(self) -> None:
        """See to it that notifications arrive; where they cannot, the caller's polling is what remains."""
        if self._listens and not self._connected() and anyio.current_time() >= self._retry_at:
            async with self._lock:
                await self._connect()

    def appended(self, position: int) -> None:
        """Wake the readers of this process now, and those of others off the write path."""
        self._stir()
        if position <= self._position:
            return
        self._position = position
        if self._listens and (self._announcer is None or not self._announcer.running):
            self._announcer = Background(self._announce())

    async def _announce(self) -> None:
        while self._announced < self._position:
            position = self._position
            async with self._lock:
                connection = await self._connect()
                if connection is None or not await _notify(connection, position):
                    return
            self._announced = position
            await anyio.sleep(_QUIET)

    async def _connect(self) -> asyncpg.Connection | None:
        if self._connected() or anyio.current_time() < self._retry_at:
            return self._connection if self._connected() else None
        try:
            self._connection = await self._listening()
        except (LogUnavailable, *FAILURES):
            self._retry_at = anyio.current_time() + _RETRY
            return None
        self._stir()
        return self._connection

    async def _listening(self) -> asyncpg.Connection:
        connection = await connect(self._address)
        try:
            # An announcement that is lost in a crash costs nobody anything: do not wait for the disk.
            await connection.execute("SET synchronous_commit = off")
            await connection.add_listener(CHANNEL, self._heard)
        except BaseException:
            connection.terminate()
            raise
        return connection

    def _connected(self) -> bool:
        return self._connection is not None and not self._connection.is_closed()

    def _heard(self, *_: Any) -> None:
        self._stir()

    def _stir(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()

    async def aclose(self) -> None:
        """Stop announcing and listening."""
        if self._announcer is not None:
            await self._announcer.aclose()
        self._stir()
        if self._connection is not None:
            self._connection.terminate()


async def _notify(connection: asyncpg.Connection, position: int) -> bool:
    try:
        await connection.execute(f"SELECT pg_notify('{CHANNEL}', '{position}')", timeout=5)
    except FAILURES:
        # A hint that does not arrive costs a reader half a second.
        connection.terminate()
        return False
    return True
