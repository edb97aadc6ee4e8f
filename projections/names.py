"""What the log of a conversation says of the names that its model called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import and_, case, func, or_, select

from events.keys import tenant_column
from events.log import EventLog
from events.schema import streams
from projections.schema import attempts

__all__ = ("NameUse", "read_names")

_MOST = 1000


class NameUse(msgspec.Struct, frozen=True):
    """How a name was used: what it led to, and how often.

    :ivar tool_id: None where the name led nowhere
    :ivar resolved: the calls in which it led to an action
    :ivar refused: the calls that failed because it did not
    """

    llm_name: str
    tool_id: str | None
    action_name: str
    resolved: int
    refused: int


async def read_names(
    log: EventLog, *, user_id: str | None, conversation_id: str | None = None, turn: str | None = None
) -> Sequence[NameUse]:
    """Return the names of a conversation, or else of one turn, first used first, the last thousand at most.

    :param turn: the message, or the run of calls that had none; for calls without a conversation
    :raises LogUnavailable: if the database cannot be read
    """
    if conversation_id is None and turn is None:
        return ()
    # Only what led to no action has no fingerprint.
    refused = case((and_(attempts.c.status == "failed", attempts.c.fingerprint == ""), 1), else_=0)
    resolved = case((attempts.c.fingerprint == "", 0), else_=1)
    named = (attempts.c.llm_name, attempts.c.tool_id, attempts.c.action_name)
    statement = select(*named, func.sum(resolved), func.sum(refused)).group_by(*named)
    statement = statement.order_by(func.min(attempts.c.stream).desc()).limit(_MOST)
    if conversation_id is not None:
        statement = statement.where(
            attempts.c.tenant == tenant_column(user_id), attempts.c.conversation_id == conversation_id
        )
    else:
        statement = _of_turn(statement, turn or "", user_id)
    rows = await log.store.read(statement)
    return [NameUse(row[0], row[1], row[2], int(row[3]), int(row[4])) for row in reversed(rows)]


def _of_turn(statement: Any, turn: str, user_id: str | None) -> Any:
    # Keys are joined texts, so a range may hold another turn's rows: the columns decide.
    return statement.select_from(streams.join(attempts, attempts.c.stream == streams.c.stream)).where(
        streams.c.tenant == tenant_column(user_id),
        streams.c.key >= f"{turn}:",
        streams.c.key < f"{turn};",
        or_(attempts.c.message_id == turn, and_(attempts.c.message_id.is_(None), attempts.c.run_id == turn)),
    )
