"""Opening a log by its URL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from events.codec import Codec
from events.errors import Refused
from events.log import EventLog
from events.store import InlineProjection, Store
from events.writer import Writer

__all__ = ("migrate", "open_log", "shown_url")

_FORMS = "sqlite:///path/to/journal.db, sqlite:// (memory), postgresql://user@host/database, or null://"


async def open_log(
    url: str,
    projection: InlineProjection,
    chains: Sequence[Any],
    *,
    codec: Codec | None = None,
    queue: int = 1024,
    observe: Callable[[int, float, int], None] | None = None,
) -> EventLog:
    """Open the log of a database; close it with ``aclose``.

    :param chains: the migration chains this process uses; SQLite is upgraded, Postgres only checked
    :param queue: appends that may wait for the writer before producers wait
    :param observe: called after each batch with (appends, seconds, refused)
    :raises Refused: if the URL is of no known form
    :raises LogUnavailable: if the database cannot be reached
    :raises SchemaMismatch: if its tables do not fit this release
    """
    store = await _open_store(url, projection, chains)
    return EventLog(store, projection, codec or Codec(), _writer(store, queue, observe))


async def migrate(url: str, chains: Sequence[Any]) -> list[str]:
    """Make a database's tables, or bring them up to this release, and return the revisions applied.

    :raises Refused: if the URL is of no known form
    :raises LogUnavailable: if the database cannot be reached or written
    :raises SchemaMismatch: if it is foreign, or made by a newer release
    """
    kind, place = _parts(url)
    if kind == "sqlite":
        from events.sqlite import migrate_sqlite

        return await migrate_sqlite(place, chains)
    if kind == "postgresql":
        from events.postgres import migrate_postgres

        return await migrate_postgres(place, chains)
    return []


async def _open_store(url: str, projection: InlineProjection, chains: Sequence[Any]) -> Store:
    kind, place = _parts(url)
    if kind == "sqlite":
        from events.sqlite import open_sqlite

        return await open_sqlite(place, projection, chains)
    if kind == "postgresql":
        from events.postgres import open_postgres

        return await open_postgres(place, projection, chains)
    from events.null import NullStore

    return NullStore()


def _writer(store: Store, queue: int, observe: Callable[[int, float, int], None] | None) -> Writer:
    if store.dialect != "null":
        return Writer(store, queue, observe)
    from events.null import NullStore, NullWriter

    assert isinstance(store, NullStore)
    return NullWriter(store)


def _parts(url: str) -> tuple[str, str]:
    """Return (kind of database, what its store is opened with)."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise Refused(f"{shown_url(url)!r} is not a database URL; use {_FORMS}")
    if scheme == "null":
        return scheme, rest
    if scheme == "sqlite":
        path = rest.removeprefix("/")
        return scheme, path or ":memory:"
    if scheme in ("postgresql", "postgres", "postgresql+asyncpg"):
        return "postgresql", f"postgresql://{rest}"
    raise Refused(f"databases of the kind {scheme!r} are not supported; use {_FORMS}")


def shown_url(url: str) -> str:
    """Return the URL without its password, fit to be shown."""
    scheme, separator, rest = url.partition("://")
    place = rest if separator else url
    userinfo, at, host = place.rpartition("@")
    shown = f"{userinfo.partition(':')[0]}@{host}" if at else place
    # A query may hold a password too, and says nothing that a reader needs.
    shown = shown.partition("?")[0]
    return f"{scheme}://{shown}" if separator else shown
