"""The open sessions of one engine: each for one owner, one user and one set of credentials, shared by nobody else."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import ClassVar, Final, TypeAlias

import anyio

from engine.contract import Scope
from engine.mcp.definitions import Definition
from engine.mcp.server import Server
from engine.mcp.session import Authenticate, Session
from engine.services import Services

__all__ = ("SessionKey", "Sessions", "key_of")

_TOLD: Final = 4096
"""Rows of which it is kept what was told of them."""

SessionKey: TypeAlias = tuple[str | None, str | None, str]


def key_of(server: Server, scope: Scope) -> SessionKey:
    """Return what a session is kept by: whose row, for which user, and the digest of whatever the server is shown."""
    return scope.owner, scope.user_id, server.digest


class Sessions:
    """Made by ``services.shared``; closed with the engine.

    Without a running engine a session lasts for one use.

    :cvar idle: seconds after which a session that nobody uses ends
    :cvar most: sessions that are open at once; beyond that the one that was used longest ago is closed
    """

    idle: ClassVar[float] = 300.0
    most: ClassVar[int] = 256

    def __init__(self, services: Services) -> None:
        self._services = services
        self._open: dict[SessionKey, Session] = {}
        self._told: dict[tuple[SessionKey, str], dict[str, Definition]] = {}
        self._closed = False

    def __repr__(self) -> str:
        return f"<Sessions {len(self._open)} open>"

    def __len__(self) -> int:
        return len(self._open)

    @asynccontextmanager
    async def session(self, key: SessionKey, server: Server, authenticate: Authenticate) -> AsyncGenerator[Session]:
        """Give the session of a key; where there is none that is usable, one that is just being opened."""
        tasks = self._services.tasks
        if tasks is None:
            async with self._single(server, authenticate) as single:
                yield single
            return
        session = self._open.get(key)
        if session is None or not session.usable:
            self._make_room()
            session = self._open[key] = Session(server, authenticate, self._services, self.idle)
            tasks.start_soon(self._run, key, session)
        yield session

    @asynccontextmanager
    async def _single(self, server: Server, authenticate: Authenticate) -> AsyncGenerator[Session]:
        session = Session(server, authenticate, self._services, self.idle)
        failure: Exception | None = None
        async with anyio.create_task_group() as owner:
            owner.start_soon(session.run)
            try:
                yield session
            except Exception as error:  # raised below: the group would wrap it
                failure = error
            finally:
                session.close()
        if failure is not None:
            raise failure

    async def _run(self, key: SessionKey, session: Session) -> None:
        try:
            await session.run()
        finally:
            self._forget(key, session)

    def drop(self, key: SessionKey, session: Session) -> None:
        """Let the next call open another session; the calls in this one go on."""
        session.retire()
        self._forget(key, session)

    def _forget(self, key: SessionKey, session: Session) -> None:
        if self._open.get(key) is session:
            del self._open[key]

    def _make_room(self) -> None:
        if len(self._open) < self.most:
            return
        key = min(self._open, key=lambda each: self._open[each].idle_since)
        self.drop(key, self._open[key])

    def tell(self, key: SessionKey, tool_id: str, definitions: dict[str, Definition]) -> None:
        """Note what the engine was told last of a row's tools, where the row does not keep it itself."""
        self._told.pop((key, tool_id), None)
        while len(self._told) >= _TOLD:
            del self._told[next(iter(self._told))]
        self._told[key, tool_id] = definitions

    def told(self, key: SessionKey, tool_id: str) -> dict[str, Definition]:
        """Return what the engine was told last of a row's tools."""
        return self._told.get((key, tool_id), {})

    async def aclose(self) -> None:
        """End every session; calls that still run in one are cut off."""
        sessions = list(self._open.values())
        for session in sessions:
            session.close()
        for session in sessions:
            await session.ended()
