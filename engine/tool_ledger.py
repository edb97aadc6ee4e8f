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
from sqlalchemy import BigInteger, Integer, exists, insert, literal, select, update
from sqlalchemy.sql import ColumnElement

from engine.contract import ToolStore
from engine.tool_schema import tool_ledgers
from events.errors import Unavailable
from events.schema import Key

__all__ = ("Planned", "Sums", "change", "sums_of")

T = TypeVar("T")

_TRIES: Final = 64
_SHORTEST_WAIT: Final = 0.002
_LONGEST_WAIT: Final = 0.2


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
    :ivar sums: as they are afterwards; None: nothing is changed, and nothing written
    :ivar statements: what is written; each must ask for the condition that the plan was given
    """

    result: T
    sums: Sums | None = None
    statements: tuple[Any, ...] = ()


Plan = Callable[[Sums, ColumnElement[bool]], Awaitable[Planned[T]]]


async def sums_of(store: ToolStore) -> Sums:
    """Return the sums as they are. :raises LogUnavailable: if the database cannot be read"""
    columns = tool_ledgers.c
    rows = await store.read(
        select(columns.entries, columns.size, columns.past, columns.last, columns.token).where(*_here(store))
    )
    return Sums(*rows[0]) if rows else Sums()


async def change(store: ToolStore, plan: Plan[T]) -> T:
    """Make the change that ``plan`` decides on, given the sums and the condition its statements must ask for.

    ``plan`` is asked again where somebody else changed anything meanwhile; what it raises is raised.

    :raises Unavailable: if others are faster every time
    :raises LogUnavailable: if the database cannot be read or written
    """
    for again in range(_TRIES):
        if again:
            # Rivals that come back at once meet again; no two wait equally long.
            await anyio.sleep(random() * min(_LONGEST_WAIT, _SHORTEST_WAIT * 2**again))  # noqa: S311
        before = await sums_of(store)
        mine = uuid4().hex
        holds = exists().where(*_here(store), tool_ledgers.c.token == mine)
        planned = await plan(before, holds)
        if planned.sums is None:
            return planned.result
        touched = await store.write(_turned(store, before.token, mine, planned.sums), *planned.statements)
        if touched[0]:
            return planned.result
    raise Unavailable("this is being changed by others all the time; try again later")


def _here(store: ToolStore) -> tuple[ColumnElement[bool], ...]:
    return tool_ledgers.c.tenant == store.tenant, tool_ledgers.c.tool_id == store.tool_id


def _turned(store: ToolStore, before: str | None, mine: str, sums: Sums) -> Any:
    if before is not None:
        values = {"token": mine, "entries": sums.entries, "size": sums.size, "past": sums.past, "last": sums.last}
        return update(tool_ledgers).where(*_here(store), tool_ledgers.c.token == before).values(values)
    row = select(
        literal(store.tenant, Key()),
        literal(store.tool_id, Key()),
        literal(mine, Key()),
        literal(sums.entries, Integer()),
        literal(sums.size, BigInteger()),
        literal(sums.past, BigInteger()),
        literal(sums.last, Integer()),
    ).where(~exists().where(*_here(store)))
    names = ["tenant", "tool_id", "token", "entries", "size", "past", "last"]
    return insert(tool_ledgers).from_select(names, row.suffix_with("ON CONFLICT DO NOTHING"), include_defaults=False)
