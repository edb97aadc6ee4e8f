"""One statement in one transaction, over one connection; on asyncio's side of the bridge."""

from __future__ import annotations

from typing import Any, Final

import anyio
import msgspec

from engine.sql.allowance import Allowance
from engine.sql.connecting import Link
from engine.sql.cost import require_cheap
from engine.sql.errors import SqlError
from engine.sql.failures import FAILURES, described
from engine.sql.rows import Rows, Taker
from engine.sql.statement import Statement
from events.bridge import to_the_end

__all__ = ("Written", "begin", "read", "write")

_LOCK: Final = 5
_IDLE: Final = 10
_COMMIT: Final = 10.0
_THE_REST: Final = 2**31 - 1


class Written(msgspec.Struct, frozen=True):
    """What became of a change.

    :ivar count: rows that it touched; None: that is not what it does
    :ivar rows: what RETURNING gave; None: nothing was asked for
    """

    count: int | None
    rows: Rows | None


async def begin(link: Link, allowance: Allowance, *, read_only: bool) -> None:
    """Begin the transaction, with its bounds.

    The settings end with it, so a pooler gives none of them on. That it only reads holds beyond it, should the
    statement end it: the one setting for the session is undone only if the transaction is rolled back, as we do.

    :raises SqlError: if the server does not take them
    """
    seconds = allowance.statement
    settings = {
        "statement_timeout": str(max(1, int(seconds * 1000))),
        "lock_timeout": str(max(1, int(min(_LOCK, seconds / 2) * 1000))),
        "idle_in_transaction_session_timeout": str(int((seconds + _IDLE) * 1000)),
        "TimeZone": "UTC",
        "standard_conforming_strings": "on",
    }
    local = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in settings.items())
    # A query of its own comes first: after it, no statement can make the transaction one that writes.
    beyond = "SELECT set_config('default_transaction_read_only', 'on', false)"
    first = f"BEGIN READ ONLY; {beyond}" if read_only else "BEGIN READ WRITE"
    try:
        await link.connection.execute(f"{first}; SELECT {local}")
    except FAILURES as error:
        raise described(error, link.watch, seconds) from error


async def read(link: Link, statement: Statement, allowance: Allowance) -> Rows:
    """Run a query and take the rows that there is room for; nothing that it does remains.

    :raises SqlError: if it fails, or would change anything
    """
    await begin(link, allowance, read_only=True)
    try:
        run = await _run(link, statement, allowance)
        if not link.watch.too_large:
            await link.connection.execute("ROLLBACK")
    except FAILURES as error:
        raise described(error, link.watch, allowance.statement) from error
    return run.taker.rows()


async def write(link: Link, statement: Statement, allowance: Allowance) -> Written:
    """Run a statement and commit it. Cancelled before that, nothing remains; afterwards it is too late.

    :raises SqlError: if it fails; nothing of it remains then, unless the text says that this is not known
    """
    await begin(link, allowance, read_only=False)
    try:
        run = await _run(link, statement, allowance)
        written = await _counted(run)
    except FAILURES as error:
        failed = described(error, link.watch, allowance.statement)
        raise (SqlError(f"{failed}; nothing was changed") if link.watch.too_large else failed) from error
    with anyio.CancelScope(shield=True):
        await to_the_end(_committed(link, allowance))
    return written


class _Run(msgspec.Struct, frozen=True):
    """A statement that was run: where its rows are, or what the server says of it."""

    taker: Taker
    cursor: Any
    tag: str


async def _run(link: Link, asked: Statement, allowance: Allowance) -> _Run:
    """Run a statement, and fetch as many rows as there is room for: the others stay on the server."""
    if allowance.cost:
        await require_cheap(link.connection, asked, allowance.cost)
    # Without a name: with one it would stay behind where a pooler is between.
    statement = await link.connection.prepare(asked.text, name="")
    taker = Taker(statement.get_attributes(), allowance.rows, allowance.size)
    link.watch.begin()
    if not taker.columns:
        await statement.fetch()
        return _Run(taker, None, statement.get_statusmsg() or "")
    cursor = await statement.cursor()
    try:
        while not taker.full:
            link.watch.begin()
            wanted = taker.wanted
            records = await cursor.fetch(wanted)
            taker.take(records)
            if len(records) < wanted:
                break
    except FAILURES:
        if not link.watch.too_large or not taker.seen:
            raise
        taker.stop("The next row is too large; select fewer columns, or parts of them: left(x, 1000).")
    return _Run(taker, cursor, "")


async def _counted(run: _Run) -> Written:
    if run.cursor is None:
        words = run.tag.split()
        return Written(int(words[-1]) if words and words[-1].isdigit() else None, None)
    rows = run.taker.rows()
    # The rest is counted where it is.
    left = await run.cursor.forward(_THE_REST) if rows.truncated else 0
    return Written(run.taker.seen + left, rows)


async def _committed(link: Link, allowance: Allowance) -> None:
    try:
        with anyio.fail_after(_COMMIT):
            await link.connection.execute("COMMIT")
    except FAILURES as error:
        # The server says why it did not; where it says nothing, nobody knows.
        if getattr(error, "sqlstate", None) and not str(error.sqlstate).startswith("08"):  # type: ignore[union-attr]
            raise described(error, link.watch, allowance.statement) from error
        raise SqlError("the connection was lost while committing; look whether the change is there") from error
