"""Journals that can be taken away while engines work on them, and come back; and what is in the spool meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from anyio.lowlevel import checkpoint
from sqlalchemy import Connection

from engine import Engine, Settings, Tool, ToolRow
from events import Recorded, ToolEvent
from tests.engine.staging import staged_engine, tool_of
from tests.logs import recorded_events
from tests.postgres_proxy import postgres_proxy

__all__ = (
    "LosableJournal",
    "drained",
    "in_log",
    "losable_postgres",
    "losable_sqlite",
    "on_losable",
    "reader",
    "spool_files",
    "spooling",
)


class LosableJournal(msgspec.Struct, frozen=True):
    """A journal that can be taken away: its file locked by another process, or its server not there.

    :ivar readable: whether it can be read still while it is away
    """

    url: str
    readable: bool
    go_away: Callable[[], None]
    come_back: Callable[[], None]


@contextmanager
def losable_sqlite(url: str) -> Iterator[LosableJournal]:
    """Take a file away by writing to it, and not finishing that."""
    other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False)
    try:
        yield LosableJournal(
            url=url,
            readable=True,
            go_away=lambda: _execute(other, "BEGIN IMMEDIATE"),
            come_back=lambda: _execute(other, "ROLLBACK"),
        )
    finally:
        other.close()


def _execute(connection: sqlite3.Connection, statement: str) -> None:
    connection.execute(statement)


@contextmanager
def losable_postgres(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LosableJournal]:
    """Take a server away by cutting what leads to it."""
    monkeypatch.setattr("events.postgres_committer.PATIENCE", 0.2)
    monkeypatch.setattr("events.postgres_pool.Pool._patiently.__defaults__", (0.2,))
    with postgres_proxy(url) as proxy:
        yield LosableJournal(url=proxy.url, readable=False, go_away=proxy.go_away, come_back=proxy.come_back)


async def _impatient(engine: Engine) -> None:
    """Have a locked file given up soon: half a minute is for other processes, not for tests."""

    def work(connection: Connection) -> None:
        connection.exec_driver_sql("PRAGMA busy_timeout=10")

    if engine.log.store.dialect == "sqlite":
        await engine.log.store.transact(work)


def spooling(folder: Path, **settings: Any) -> Settings:
    """Return settings with a spool of the test's own."""
    return Settings(spool=folder / "spool", **settings)


@asynccontextmanager
async def on_losable(
    journal: LosableJournal, settings: Settings, *tools: type[Tool], rows: Sequence[ToolRow] | None = None
) -> AsyncIterator[Engine]:
    """Open an engine that gives its journal up soon."""
    async with staged_engine(journal.url, *tools, rows=rows, settings=settings) as engine:
        await _impatient(engine)
        yield engine


def reader(runs: Callable[..., Any], **facts: Any) -> type[Tool]:
    """Return a tool made of a function, with the effect ``read``."""
    return tool_of(runs, effect="read", **facts)


async def drained(engine: Engine) -> None:
    """Wait until nothing is spooled."""
    with anyio.fail_after(30):
        while engine.statistics().spool.depth:
            await checkpoint()


async def in_log(engine: Engine) -> list[Recorded[ToolEvent]]:
    """Return everything in the log, of every tenant."""
    return await recorded_events(engine.log)


def spool_files(settings: Settings) -> list[Path]:
    """Return the files that hold something, of every journal under the settings' spool."""
    assert settings.spool is not None
    return sorted(path for path in settings.spool.rglob("*") if path.is_file() and path.name != "lock")
