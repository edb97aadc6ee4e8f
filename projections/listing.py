"""Many rows of ``tool_call_attempts``, for people and programs that look through them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, and_, or_, select

from events.keys import tenant_column
from events.log import EventLog
from events.transitions import Status
from projections.row import AttemptRow
from projections.rows import decoded
from projections.schema import attempts

__all__ = ("Wanted", "list_attempts")

_PAGE = 500


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows.

    :ivar user_id: the tenant; None is a tenant of its own
    :ivar every_tenant: all of them instead
    :ivar message_id: the turn, or the run of calls that had no message
    """

    user_id: str | None
    every_tenant: bool = False
    status: Status | None = None
    message_id: str | None = None


async def list_attempts(log: EventLog, wanted: Wanted, newest: int | None = None) -> AsyncIterator[AttemptRow]:
    """Yield rows in the order in which their calls were proposed, page by page.

    :param newest: only so many, those proposed last; None: all
    :raises LogUnavailable: if the database cannot be read, or a row is damaged
    """
    conditions = _conditions(wanted)
    after = 0 if newest is None else await _before_newest(log, conditions, newest)
    while True:
        statement = select(*attempts.c).where(attempts.c.stream > after, *conditions).order_by(attempts.c.stream)
        rows = await log.store.read(statement.limit(_PAGE))
        for columns in rows:
            row = decoded(columns)
            after = row.stream
            yield row
        if len(rows) < _PAGE:
            return


async def _before_newest(log: EventLog, conditions: list[ColumnElement[bool]], newest: int) -> int:
    statement = select(attempts.c.stream).where(*conditions).order_by(attempts.c.stream.desc())
    rows: Any = await log.store.read(statement.offset(newest).limit(1))
    return int(rows[0][0]) if rows else 0


def _conditions(wanted: Wanted) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if not wanted.every_tenant:
        conditions.append(attempts.c.tenant == tenant_column(wanted.user_id))
    if wanted.status is not None:
        conditions.append(attempts.c.status == wanted.status)
    if wanted.message_id is not None:
        run = and_(attempts.c.message_id.is_(None), attempts.c.run_id == wanted.message_id)
        conditions.append(or_(attempts.c.message_id == wanted.message_id, run))
    return conditions
