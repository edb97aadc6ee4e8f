"""What a tool row keeps for a user, in sums, and the one order in which it is changed.

A change reads the sums and whatever else it needs, decides what to write, and writes it only if nobody has changed
anything since: every change sets a new token, and every statement of it asks for that token. So decisions about several
rows (quotas, numbers, a name that must be free) hold on SQLite and Postgres alike, without a lock held over a read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import random
from typing import Any, Final, Generic, TypeVar
from uuid import uuid4

import anyio
import msgspec

from engine.contract import ToolStore
from engine.tool_sql import Sql
from events.errors import Unavailable

__all__ = ("Plan", "Planned", "Sums", "change", "sums_of")

T = TypeVar("T")

_TRIES: Final = 64
_SHORTEST_WAIT: Final = 0.002
_LONGEST_WAIT: Final = 0.2

_READ: Final = Sql("SELECT entries, size, past, last, token FROM tool_ledgers WHERE {here}")
_FIRST: Final = Sql(
    "INSERT INTO tool_ledgers (tenant, tool_id, token, entries, size, past, last) "
    "SELECT :tenant, :tool_id, :token, :entries, :size, :past, :last "
    "WHERE NOT EXISTS (SELECT 1 FROM tool_ledgers WHERE {here}) ON CONFLICT DO NOTHING"
)
_NEXT: Final = Sql(
    "UPDATE tool_ledgers SET token = :token, entries = :entries, size = :size, past = :past, last = :last "
    "WHERE {here} AND token = :old_token"
)


class Sums(msgspec.Struct, frozen=True):
    """What there is in all.

    :ivar entries: how many items
    :ivar size: their bytes
    :ivar past: the bytes of their history
    :ivar last: the last number given to one
    :ivar token: whose change this is; None: there has been none
    """

    entries: int = 0
    size: int = 0
    past: int = 0
    last: int = 0
    token: str | None = None


class Planned(msgspec.Struct, Generic[T], frozen=True):
    """A change that was decided on.

    :ivar result: what the caller gets once it is made
    :ivar before: the sums as they were read, before anything else was
    :ivar after: the sums as they are then; None: nothing is changed, and nothing written
    :ivar statements: what is written; each must ask for the token that the plan was given (``tool_sql.HOLDS``)
    """

    result: T
    before: Sums = Sums()
    after: Sums | None = None
    statements: tuple[Any, ...] = ()


Plan = Callable[[str], Awaitable[Planned[T]]]


async def sums_of(store: ToolStore) -> Sums:
    """Return the sums as they are. :raises LogUnavailable: if the database cannot be read"""
    rows = await store.read(_READ.bind(store))
    return Sums(*rows[0]) if rows else Sums()


async def change(store: ToolStore, plan: Plan[T]) -> T:
    """Make the change that ``plan`` decides on; it is given the token of the change.

    ``plan`` is asked again where somebody else changed anything meanwhile; what it raises is raised.

    :raises Unavailable: if others are faster every time
    :raises LogUnavailable: if the database cannot be read or written
    """
    for again in range(_TRIES):
        if again:
            # Rivals that come back at once meet again; no two wait equally long.
            await anyio.sleep(random() * min(_LONGEST_WAIT, _SHORTEST_WAIT * 2**again))  # noqa: S311
        token = uuid4().hex
        planned = await plan(token)
        if planned.after is None:
            return planned.result
        turned = _turned(store, planned.before.token, token, planned.after)
        if (await store.write(turned, *planned.statements))[0]:
            return planned.result
    raise Unavailable("this is being changed by others all the time; try again later")


def _turned(store: ToolStore, old_token: str | None, token: str, sums: Sums) -> Any:
    values = {"entries": sums.entries, "size": sums.size, "past": sums.past, "last": sums.last, "token": token}
    if old_token is None:
        return _FIRST.bind(store, **values)
    return _NEXT.bind(store, old_token=old_token, **values)
