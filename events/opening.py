"""Opening a log by its URL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from events.codec import Codec
from events.errors import Refused
from events.log import EventLog
from events.store import InlineProjection, Store
from events.writer import Writer

__all__ = ("open_log", "shown_url")

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
    return EventLog(store, projection, codec or Codec(), Writer(store, queue, observe))


async def _open_store(url: str, projection: InlineProjection, chains: Sequence[Any]) -> Store:
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise Refused(f"{shown_url(url)!r} is not a database URL; use {_FORMS}")
    if scheme == "null":
        from events.null import NullStore

        return NullStore()
    if scheme == "sqlite":
        from events.sqlite import open_sqlite

        path = rest.removeprefix("/")
        return await open_sqlite(path if path not in ("", ":memory:") else ":memory:", projection, chains)
    if scheme in ("postgresql", "postgres", "postgresql+asyncpg"):
        from events.postgres import open_postgres

        return await open_postgres(f"postgresql://{rest}", projection, chains)
    raise Refused(f"databases of the kind {scheme!r} are not supported; use {_FORMS}")


def shown_url(url: str) -> str:
    """Return the URL without its password, fit to be shown."""
    scheme, separator, rest = url.partition("://")
    userinfo, at, host = rest.rpartition("@")
    if not separator or not at:
        return url
    user = userinfo.partition(":")[0]
    return f"{scheme}://{user}@{host}"
