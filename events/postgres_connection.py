"""Connections to Postgres: where it is, how to reach it, and what its errors mean."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import asyncpg
import msgspec

from events.errors import JournalError, LogUnavailable, Refused

__all__ = ("FAILURES", "Address", "connect", "is_lost", "is_pooled", "reason", "translated")

CONNECT_TIMEOUT = 5.0

FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
"""What the driver raises when something is wrong with the database or on the way to it."""

_DIRECT = "calljournal.direct"

_SETTINGS = {
    "application_name": "calljournal",
    # Whatever the role's defaults are: a commit is on disk, and each statement sees what the one before did not.
    "synchronous_commit": "on",
    "default_transaction_isolation": "read committed",
    _DIRECT: "1",
}

_LOST_CODES = frozenset({"57P01", "57P02", "57P03", "53300"})
"""Shutdown, crash, not ready yet, too many connections."""


class Address(msgspec.Struct, frozen=True):
    """Which database, from its URL.

    :ivar dsn: what the driver is given; holds the password, never shown
    :ivar place: the form for people, e.g. ``Postgres at localhost:5432, database 'journal'``
    :ivar pooled: behind a pooler in transaction mode, says the URL (``?pooled=1``)
    """

    dsn: str
    place: str
    pooled: bool

    @classmethod
    def of(cls, url: str) -> Address:
        """Read a ``postgresql://`` URL.

        :raises Refused: if it is none
        """
        try:
            parts = urlsplit(url)
            pairs = parse_qsl(parts.query, keep_blank_values=True)
        except ValueError as error:
            raise Refused(f"this is not a Postgres URL ({error}); use postgresql://user@host:5432/database") from error
        pooled = any(name == "pooled" and value not in ("", "0") for name, value in pairs)
        query = urlencode([pair for pair in pairs if pair[0] != "pooled"])
        host = parts.netloc.rpartition("@")[2] or dict(pairs).get("host", "") or "localhost"
        if not host.rpartition(":")[2].isdigit():
            host = f"{host}:5432"
        # Not urlunsplit, which loses the slashes of an empty host (a socket named in the query).
        dsn = f"postgresql://{parts.netloc}{parts.path}{'?' * bool(query)}{query}"
        return cls(dsn, f"Postgres at {host}, database {parts.path.removeprefix('/')!r}", pooled)

    @property
    def url(self) -> str:
        """The URL that gives this address again; holds the password."""
        return f"{self.dsn}{'&' if '?' in self.dsn else '?'}pooled=1" if self.pooled else self.dsn

    def __repr__(self) -> str:
        return f"<{self.place}{', pooled' if self.pooled else ''}>"


async def connect(address: Address) -> asyncpg.Connection:
    """Open a connection.

    :raises LogUnavailable: if the database cannot be reached
    """
    options: dict[str, Any] = {"statement_cache_size": 0}
    if not address.pooled:
        options = {"server_settings": _SETTINGS}
    try:
        return await asyncpg.connect(address.dsn, timeout=CONNECT_TIMEOUT, **options)
    except (*FAILURES, ValueError) as error:
        raise LogUnavailable(f"{address.place}: {reason(error)}") from error


async def is_pooled(address: Address) -> bool:
    """Tell whether the database is behind a pooler in transaction mode.

    A server takes any setting with a dot in its name at the start of a session; a pooler refuses or forgets it.

    :raises LogUnavailable: if the database cannot be reached
    """
    if address.pooled:
        return True
    try:
        connection = await connect(address)
    except LogUnavailable as error:
        if isinstance(error.__cause__, asyncpg.ProtocolViolationError):
            return True
        raise
    try:
        kept: str | None = await connection.fetchval(f"SELECT current_setting('{_DIRECT}', true)")
    finally:
        connection.terminate()
    return kept != "1"


def is_lost(error: BaseException) -> bool:
    """Tell whether an error means that the connection is gone (a dying server gives many), so that another may help."""
    if isinstance(error, asyncpg.PostgresError):
        code = str(getattr(error, "sqlstate", "") or "")
        return code.startswith("08") or code in _LOST_CODES
    # A server that dies in the middle of an answer makes the driver doubt itself.
    lost = isinstance(error, OSError | asyncpg.InterfaceError | asyncpg.InternalClientError)
    return lost and not isinstance(error, TimeoutError | ValueError)


def reason(error: BaseException) -> str:
    """Return one line for people: what is wrong and what to do."""
    code = str(getattr(error, "sqlstate", "") or "")
    text = (str(error) or type(error).__name__).splitlines()[0]
    match code:
        case "28P01" | "28000":
            return f"it refuses this user ({text}); check user and password in the URL"
        case "3D000":
            return "there is no such database; create it, then run `calljournal migrate`"
        case "42P01" | "42883":
            return f"it lacks what this release needs ({text}); run `calljournal migrate`"
        case "42501":
            return f"this user may not do that ({text}); grant it, or use another user"
        case "53100":
            return "its disk is full; free some space"
        case "25006":
            return "it is read-only (a standby?); use the primary"
        case "55P03":
            return "another transaction holds a row of this append locked; end that one, or try again"
        case _:
            pass
    if isinstance(error, TimeoutError):
        return "it does not answer in time; check the server and the network"
    if isinstance(error, OSError):
        return f"no connection ({text}); check that it runs and that host and port are right"
    return text


def translated(address: Address, error: Exception) -> JournalError:
    """Return a statement's failure as ours: Refused where the data is at fault, else LogUnavailable."""
    code = str(getattr(error, "sqlstate", "") or "")
    if code[:2] in ("22", "23", "54") or isinstance(error, ValueError):
        text = str(error).splitlines()[0]
        return Refused(f"the database cannot store this call ({text}); remove what is not text, or shorten it")
    return LogUnavailable(f"{address.place}: {reason(error)}")
