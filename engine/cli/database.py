"""Opening the journal for a command."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from engine.cli.output import note
from events.errors import LogUnavailable, Refused
from events.log import EventLog

__all__ = ("migrated", "opened", "require_journal", "sqlite_file")


@asynccontextmanager
async def opened(url: str, *, make: bool = False) -> AsyncIterator[EventLog]:
    """Open the log of a database that is there already, without an engine, and close it.

    :param make: make the file where a URL names one and there is none, and say so
    :raises LogUnavailable: if there is none, or it cannot be reached
    :raises SchemaMismatch: if its tables do not fit this release
    :raises Refused: if the URL is of no known form, or what is to be made would be in memory
    """
    from engine.migration import CHAINS
    from events.opening import open_log
    from projections.attempts import AttemptsProjection

    file = sqlite_file(url)
    if make and file is None and url.startswith("sqlite:"):
        raise Refused("a journal in memory is gone when this command ends; name a file with --database")
    is_new = make and file is not None and not file.exists()
    if not is_new:
        require_journal(url)
    log = await open_log(url, AttemptsProjection(), CHAINS)
    try:
        if is_new:
            # Of a name that was mistyped it shows.
            note(f"there was no journal {str(file)!r}; it is made")
        yield log
    finally:
        with anyio.CancelScope(shield=True):
            await log.aclose()


def require_journal(url: str) -> None:
    """Refuse a file that is not there: looking into a journal must not make one where a name was mistyped.

    :raises LogUnavailable: if a URL names a file, and there is none
    """
    file = sqlite_file(url)
    if file is not None and not file.exists():
        raise LogUnavailable(
            f"there is no journal {str(file)!r} yet; `calljournal run` or `tools add` makes one, or name another with "
            "--database"
        )


async def migrated(url: str) -> list[str]:
    """Bring a database's tables up to this release, and return the revisions applied.

    :raises Unavailable: if it cannot be reached, is foreign, or of a newer release
    :raises Refused: if the URL is of no known form
    """
    from engine.migration import CHAINS
    from events.opening import migrate

    return await migrate(url, CHAINS)


def sqlite_file(url: str) -> Path | None:
    """Return the file that a URL names, None where it names no file."""
    scheme, _, rest = url.partition("://")
    path = rest.removeprefix("/")
    return Path(path) if scheme == "sqlite" and path not in ("", ":memory:") else None
