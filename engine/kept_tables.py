"""The statements that list, export and erase what tools keep: one form for the tables of all of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final
from uuid import uuid4

import msgspec
from sqlalchemy import Connection, LargeBinary, case, cast, delete, func, or_, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql import ColumnElement

from engine.keeping import Keeping
from engine.tool_schema import text_index, tool_ledgers
from events.store import Store

__all__ = ("ErasedSome", "content_of", "erase_some", "forget_empty", "measured")

_PAGE: Final = 32
"""Rows in memory: a page of a wiki may have a megabyte."""

_AT_ONCE: Final = 50
"""Things erased in one transaction, which others wait for."""

_LEDGER: Final = tool_ledgers.c


class ErasedSome(msgspec.Struct, frozen=True):
    """What one transaction erased, and whether nothing is left."""

    items: int
    versions: int
    is_all: bool


async def measured(store: Store, keeping: Keeping, tenant: str) -> dict[str, dict[str, int]]:
    """Return how much is kept of a tenant, by whose it is. :raises LogUnavailable: if it cannot be read"""
    sums: dict[str, dict[str, int]] = {}
    for table, texts, count, size in (
        (keeping.items, keeping.texts, "items", "size"),
        (keeping.past, keeping.past_texts, "versions", "past"),
    ):
        whose = table.c[keeping.whose]
        length = sum((_bytes(store.dialect, table.c[name]) for name in texts), start=_NOTHING)
        asked = select(whose, func.count(), func.sum(length)).where(table.c.tenant == tenant).group_by(whose)
        for name, many, long in await store.read(asked):
            found = sums.setdefault(name, {"items": 0, "size": 0, "versions": 0, "past": 0})
            found[count], found[size] = int(many), int(long or 0)
    return sums


async def content_of(
    store: Store, keeping: Keeping, table: Any, tenant: str, whose: str
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the rows of a table, in order, without what says whose they are.

    :raises LogUnavailable: if they cannot be read
    """
    owners = ("tenant", keeping.whose)
    columns = [column for column in table.c if column.name not in owners]
    key = [column for column in table.primary_key if column.name not in owners]
    asked = select(*columns).where(*_here(keeping, table, tenant, whose)).order_by(*key).limit(_PAGE)
    rows: Sequence[Any] = await store.read(asked)
    while rows:
        content: dict[str, Any] = {}
        for row in rows:
            content = {column.name: value for column, value in zip(columns, row, strict=True)}
            yield content
        after = [content[column.name] for column in key]
        rows = [] if len(rows) < _PAGE else await store.read(asked.where(tuple_(*key) > tuple_(*after)))


def erase_some(keeping: Keeping, tenant: str, whose: str, connection: Connection) -> ErasedSome:
    """Erase some things with their versions, what follows from them and what a search finds; the sums stay right."""
    if keeping.hold is None:
        _hold_sums(connection, tenant, whose)
    else:
        keeping.hold(connection, tenant, whose)
    names = _some(keeping, tenant, whose, connection)
    if keeping.hold is None:
        _take_off(keeping, tenant, whose, names, connection)
    gone = [_without(keeping, table, tenant, whose, names, connection) for table in keeping.tables]
    space = None if keeping.index is None else f"{keeping.index}:{whose}"
    found = (text_index.c.tenant == tenant, text_index.c.space == space)
    connection.execute(delete(text_index).where(*found, text_index.c.key.in_(list(map(str, names)))))
    is_all = len(names) < _AT_ONCE
    if is_all:
        connection.execute(delete(text_index).where(*found))
    if is_all and keeping.hold is None:
        connection.execute(delete(tool_ledgers).where(_LEDGER.tenant == tenant, _LEDGER.tool_id == whose))
    return ErasedSome(gone[0], gone[1], is_all)


def forget_empty(keepings: Sequence[Keeping], tenant: str, row: str | None, connection: Connection) -> None:
    """Forget the sums of a tenant's rows, or of one and its parts, that keep nothing any more."""
    which: list[ColumnElement[bool]] = [_LEDGER.tenant == tenant]
    which += [column == 0 for column in (_LEDGER.entries, _LEDGER.size, _LEDGER.past)]
    if row is not None:
        # "A" comes next after "@".
        parts = (_LEDGER.tool_id >= f"{row}@") & (_LEDGER.tool_id < f"{row}A")
        which.append(or_(_LEDGER.tool_id == row, parts))
    # Locked first, so that what is looked at next is what the sums are of.
    empty = list(connection.execute(select(_LEDGER.tool_id).where(*which).with_for_update()).scalars())
    for table in [table for keeping in keepings if keeping.hold is None for table in (keeping.items, keeping.past)]:
        of = (table.c.tenant == _LEDGER.tenant, table.c.tool_id == _LEDGER.tool_id)
        which.append(~select(table.c.tool_id).where(*of).exists())
    connection.execute(delete(tool_ledgers).where(_LEDGER.tool_id.in_(empty), *which))


_NOTHING: Final[ColumnElement[int]] = cast(0, tool_ledgers.c.size.type)


def _bytes(dialect: str, column: Any) -> ColumnElement[int]:
    length = func.octet_length(column) if dialect == "postgresql" else func.length(cast(column, LargeBinary))
    return case((column.is_(None), 0), else_=length)


def _here(keeping: Keeping, table: Any, tenant: str, whose: str) -> tuple[ColumnElement[bool], ...]:
    return table.c.tenant == tenant, table.c[keeping.whose] == whose


def _hold_sums(connection: Connection, tenant: str, whose: str) -> None:
    """Turn the token, making the sums where there are none: every change that was decided on is decided anew.

    Their row is locked from here on, so that no change comes between.
    """
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    first = {"tenant": tenant, "tool_id": whose, "entries": 0, "size": 0, "past": 0, "last": 0}
    token = uuid4().hex
    turned = insert(tool_ledgers).values(**first, token=token)
    connection.execute(turned.on_conflict_do_update(index_elements=["tenant", "tool_id"], set_={"token": token}))


def _some(keeping: Keeping, tenant: str, whose: str, connection: Connection) -> list[Any]:
    """Return the names of some things: of those that are there, then of those that only were."""
    names: list[Any] = []
    for table in keeping.tables:
        name, here = table.c[keeping.item], _here(keeping, table, tenant, whose)
        room = _AT_ONCE - len(names)
        more = select(name).where(*here, name.not_in(names)).distinct().order_by(name).limit(room)
        names += connection.execute(more).scalars() if room else []
    return names


def _take_off(keeping: Keeping, tenant: str, whose: str, names: list[Any], connection: Connection) -> None:
    """Make the sums what they are without these things."""

    def sums(table: Any) -> tuple[int, int]:
        size = func.sum(table.c.size) if "size" in table.c else func.sum(0)
        of = (*_here(keeping, table, tenant, whose), table.c[keeping.item].in_(names))
        many, long = connection.execute(select(func.count(), size).where(*of)).one()
        return int(many), int(long or 0)

    (entries, size), (_, past) = sums(keeping.items), sums(keeping.past)
    less = {"entries": _LEDGER.entries - entries, "size": _LEDGER.size - size, "past": _LEDGER.past - past}
    connection.execute(update(tool_ledgers).values(less).where(_LEDGER.tenant == tenant, _LEDGER.tool_id == whose))


def _without(keeping: Keeping, table: Any, tenant: str, whose: str, names: list[Any], connection: Connection) -> int:
    of = (*_here(keeping, table, tenant, whose), table.c[keeping.item].in_(names))
    return connection.execute(delete(table).where(*of)).rowcount
