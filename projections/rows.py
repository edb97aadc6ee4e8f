"""Rows of ``tool_call_attempts`` as typed values, and how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import and_, or_, select

from events.codec import decode_json
from events.errors import LogUnavailable
from events.keys import tenant_column, tenant_of
from events.log import EventLog
from events.schema import streams
from projections.row import AttemptRow
from projections.schema import attempts

__all__ = ("decoded", "read_attempt", "read_message")


async def read_attempt(log: EventLog, key: str, user_id: str | None) -> AttemptRow | None:
    """Return the row of one call, or None where the tenant has no such call.

    :raises LogUnavailable: if the database cannot be read, or the row is damaged
    """
    rows = await log.store.read(_of_streams().where(streams.c.tenant == tenant_column(user_id), streams.c.key == key))
    return decoded(rows[0]) if rows else None


async def read_message(log: EventLog, message_id: str, user_id: str | None) -> list[AttemptRow]:
    """Return the rows of a turn in the order in which its calls were proposed, refused repetitions included.

    :param message_id: the message, or the run of calls that had none
    :raises LogUnavailable: if the database cannot be read, or a row is damaged
    """
    # Keys are joined texts, so a range may hold another message's rows: the columns decide.
    turn = or_(
        attempts.c.message_id == message_id,
        and_(attempts.c.message_id.is_(None), attempts.c.run_id == message_id),
    )
    statement = _of_streams().where(
        streams.c.tenant == tenant_column(user_id),
        streams.c.key >= f"{message_id}:",
        streams.c.key < f"{message_id};",
        turn,
    )
    rows = await log.store.read(statement.order_by(attempts.c.stream))
    return [decoded(row) for row in rows]


def _of_streams() -> Any:
    return select(*attempts.c).join_from(streams, attempts, attempts.c.stream == streams.c.stream)


def decoded(columns: Sequence[Any]) -> AttemptRow:
    """Return a row of the table, its columns in the table's order. :raises LogUnavailable: if the row is damaged"""
    names = AttemptRow.__struct_fields__
    row = dict(zip(names, columns, strict=True))
    row["user_id"] = tenant_of(row["user_id"])
    for name in ("arguments", "result"):
        if row[name] is not None:
            try:
                row[name] = decode_json(row[name])
            except msgspec.DecodeError as error:
                raise LogUnavailable(
                    f"the state row of call {row['key']!r} is damaged ({name}: {error}); run verify, then rebuild"
                ) from error
    return AttemptRow(**row)
