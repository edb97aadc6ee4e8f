"""What ``doctor`` looks at in the database: reached, fitting, durable, writable, with room to grow."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import anyio.to_thread
import sqlalchemy
from sqlalchemy import Connection, delete, func, insert, select
from sqlalchemy.pool import StaticPool

from engine.cli.database import opened, sqlite_file
from engine.cli.finding import Finding
from engine.migration import CHAINS
from events.errors import JournalError
from events.keys import new_id
from events.log import EventLog
from events.migration import check
from events.opening import shown_url
from events.schema import leases, schemas

__all__ = ("check_database",)

_MB: Final = 1024 * 1024
_LOW: Final = 1024 * _MB
_VERY_LOW: Final = 100 * _MB
_ABSENT: Final = "no database yet"
_QUICK: Final = 256 * _MB
"""Larger files are not read from end to end."""


async def check_database(url: str) -> AsyncIterator[Finding]:
    """Yield what there is to say of the database. Changes nothing that is there.

    :raises Refused: if the URL is of no known form
    """
    file = sqlite_file(url)
    if file is not None:
        findings = await anyio.to_thread.run_sync(lambda: tuple(_check_file(file)))
        for finding in findings:
            yield finding
        if any(finding.level == "fault" or finding.subject == _ABSENT for finding in findings):
            return
    try:
        async with opened(url) as log:
            yield Finding("ok", "database", f"{shown_url(url)} answers")
            async for finding in _check_log(log):
                yield finding
    except JournalError as error:
        yield Finding("fault", "database", str(error))


def _check_file(file: Path) -> Iterator[Finding]:
    folder = file.absolute().parent
    if not folder.is_dir():
        yield Finding("fault", "database", f"the folder {folder} does not exist", "make it, or name another file")
        return
    yield _room(folder)
    if not file.exists():
        yield Finding("ok", _ABSENT, f"there is no journal {file} yet; `calljournal run` or `migrate` makes one")
    else:
        yield _look_into(file)


def _room(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    text = f"{free // _MB} MB free for {folder}"
    if free < _VERY_LOW:
        return Finding("fault", "disk", text, "free some space: a full disk stops every call")
    if free < _LOW:
        return Finding("warning", "disk", text, "free some space before it is full")
    return Finding("ok", "disk", text)


def _look_into(file: Path) -> Finding:
    """Look before opening: opening brings older tables up to date."""

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True)

    try:
        with closing(connect()) as connection:
            engine = sqlalchemy.create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
            with engine.connect() as checked:
                check(checked, CHAINS)
                return _damage(checked, file)
    except JournalError as error:
        return Finding("fault", "database", str(error))
    except (sqlite3.Error, sqlalchemy.exc.DBAPIError) as error:
        said = str(getattr(error, "orig", None) or error)
        return Finding("fault", "database", f"{file} cannot be read ({said})", "restore it from a backup")


def _damage(connection: Connection, file: Path) -> Finding:
    if file.stat().st_size > _QUICK:
        return Finding("ok", "file", f"{file} is large and was not read whole; `calljournal verify` does that")
    said = str(connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one())
    if said == "ok":
        return Finding("ok", "file", f"{file} is sound")
    return Finding("fault", "file", f"{file} is damaged ({said})", "restore it from a backup, then run verify")


async def _check_log(log: EventLog) -> AsyncIterator[Finding]:
    columns = (schemas.c.package, schemas.c.revision)
    found = await log.store.read(select(*columns).order_by(schemas.c.package)) if _has_tables(log) else ()
    yield Finding("ok", "schema", ", ".join(f"{package} {revision}" for package, revision in found) or "none needed")
    if not _has_tables(log):
        return
    yield await _durability(log)
    yield await _writable(log)
    yield await _leases(log)


def _has_tables(log: EventLog) -> bool:
    return log.store.dialect != "null"


async def _durability(log: EventLog) -> Finding:
    ask: Callable[[], Any] = log.store.durability  # type: ignore[attr-defined]
    said = await ask()
    if log.store.dialect == "sqlite":
        text = f"journal_mode={said.journal_mode}, synchronous={said.synchronous}"
        good = said.synchronous in ("full", "extra")
        advice = "open it with this release, on a disk of this machine"
    else:
        text = f"fsync={said.fsync}, synchronous_commit={said.synchronous_commit}"
        good = said.fsync == "on" and said.synchronous_commit not in ("off", "local")
        advice = "set fsync = on and synchronous_commit = on in the server's configuration"
    if good:
        return Finding("ok", "durability", text)
    return Finding("fault", "durability", f"{text}: what was acknowledged may be lost in a power cut", advice)


async def _writable(log: EventLog) -> Finding:
    row = {"worker": f"doctor-{new_id()}", "started_at": datetime.now(UTC), "expires_at": datetime.now(UTC)}
    # A row that comes and goes in one transaction: written to disk, seen by nobody.
    await log.store.write([insert(leases).values(row), delete(leases).where(leases.c.worker == row["worker"])])
    return Finding("ok", "writing", "a row was written and taken back")


async def _leases(log: EventLog) -> Finding:
    moment = datetime.now(UTC)
    counts = select(func.count()).select_from(leases)
    alive = (await log.store.read(counts.where(leases.c.expires_at > moment)))[0][0]
    gone = (await log.store.read(counts.where(leases.c.expires_at <= moment - timedelta(seconds=5))))[0][0]
    if not gone:
        return Finding("ok", "workers", f"{alive} alive")
    return Finding(
        "warning",
        "workers",
        f"{alive} alive; {gone} ended without a word",
        "see what they left: calljournal reconcile --dry-run",
    )
