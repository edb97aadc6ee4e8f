"""What is said of a statement that failed: what the server says, and what to do where we know better."""

from __future__ import annotations

import re
from typing import Final

import asyncpg

from engine.sql.errors import SqlError
from engine.sql.watch import Watch

__all__ = ("FAILURES", "described")

FAILURES: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, ValueError)
"""What the driver raises when a statement fails, or what comes back cannot be read."""

_LONGEST: Final = 1000
_WHOM: Final = re.compile(r'\b(user|role|host|database) "[^"]*"')
_HELP: Final = {
    "25006": "; to change data, use postgres_write_sql",
    "42501": "; the database's owner can grant it",
}


def described(error: Exception, watch: Watch, seconds: float) -> SqlError:
    """Return a failure as ours.

    :param seconds: the time that the statement had
    """
    return SqlError(" ".join(_said(error, watch, seconds).split())[:_LONGEST])


def _said(error: Exception, watch: Watch, seconds: float) -> str:
    if watch.too_large:
        return f"a row is too large: {watch.problem}; select fewer columns, or parts of them"
    if isinstance(error, asyncpg.PostgresError):
        return _of_server(error, seconds)
    if isinstance(error, asyncpg.UnsupportedClientFeatureError | UnicodeDecodeError | ValueError):
        return "a value that came cannot be read; cast it to text in the statement (x::text)"
    if isinstance(error, asyncpg.InterfaceError) and "argument" in str(error):
        return "the statement has parameters ($1), which cannot be given here; write the values into it"
    return "the connection was lost"


def _of_server(error: asyncpg.PostgresError, seconds: float) -> str:
    code = str(getattr(error, "sqlstate", "") or "")
    if code == "57014":
        return f"the statement was cancelled: it took longer than {seconds:.3g} s"
    if code.startswith("08"):
        return "the connection was lost"
    if code == "55P03":
        return "the statement was cancelled: it waited too long for a lock that another session holds"
    if code == "42601" and getattr(error, "server_source_function", None) == "exec_parse_message":
        return "sql_query must be one statement; send several in several calls"
    parts = [str(getattr(error, "message", None) or error).splitlines()[0].rstrip(".")]
    for name in ("detail", "hint"):
        if text := getattr(error, name, None):
            parts.append(str(text).rstrip("."))
    where = f" (at character {error.position})" if getattr(error, "position", None) else ""
    said = _WHOM.sub(lambda match: f'{match[1]} "***"', ". ".join(parts))
    return f"{said}{where}{_HELP.get(code, '')}"
