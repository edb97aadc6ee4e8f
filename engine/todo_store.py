"""To-do items in the journal's database, and every version of each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import Boolean, Integer, Text, delete, insert, literal, or_, select, union_all, update
from sqlalchemy.sql import ColumnElement

from engine.contract import ToolContext
from engine.todo_item import TodoItem
from engine.todo_limits import REMEMBERED, VERSIONS
from engine.tool_schema import todo_history, todos
from events.schema import Key, Utc

__all__ = ("TodoStore", "TodoVersion")

Condition = ColumnElement[bool]

_ITEM: Final = ("number", "title", "done", "priority", "due_at", "parent", "version")


class TodoVersion(msgspec.Struct, frozen=True):
    """What an item was at a version; no item: it was deleted."""

    version: int
    item: TodoItem | None
    changed_at: datetime
    by_call: str | None


class TodoStore:
    """Reads one user's items, and says how they are written."""

    def __init__(self, context: ToolContext) -> None:
        self._store = context.store
        self._by_call = context.idempotency_key

    async def item(self, number: int) -> TodoItem | None:
        """Return an item, or None. :raises LogUnavailable: if the database cannot be read"""
        found = await self._items(select(*self._columns()).where(*self.here(), todos.c.number == number))
        return found[0] if found else None

    async def page(self, after: int, done: bool | None, limit: int) -> list[TodoItem]:
        """Return the items after a number, all or those of one status, in the order of their numbers; see ``item``."""
        status = [] if done is None else [todos.c.done.is_(done)]
        asked = select(*self._columns()).where(*self.here(), todos.c.number > after, *status)
        return await self._items(asked.order_by(todos.c.number).limit(limit))

    async def parts(self, number: int, limit: int) -> list[TodoItem]:
        """Return the items that are parts of one; see ``item``."""
        asked = select(*self._columns()).where(*self.here(), todos.c.parent == number)
        return await self._items(asked.order_by(todos.c.number).limit(limit))

    async def versions(self, number: int) -> list[TodoVersion]:
        """Return the versions of an item that are kept, the newest first; see ``item``."""
        past = todo_history.c
        rows = await self._store.read(
            select(past.version, past.definition, past.changed_at, past.by_call)
            .where(*self._past(), past.number == number)
            .order_by(past.version.desc())
        )
        return [TodoVersion(row[0], _defined(row[1]), row[2], row[3]) for row in rows]

    def made(self, items: Sequence[TodoItem], now: datetime, holds: Condition) -> list[Any]:
        """Return the statements that make items."""
        rows = [select(*self._owner(), *_values(item), *_moments(now, now)).where(holds) for item in items]
        names = ["tenant", "tool_id", *_ITEM, "created_at", "updated_at"]
        made = insert(todos).from_select(names, _together(rows), include_defaults=False)
        return [made, self._remembered(items, now, holds)]

    def changed(self, item: TodoItem, now: datetime, holds: Condition) -> list[Any]:
        """Return the statements that make an item what it is given as."""
        values = {name: getattr(item, name) for name in _ITEM[1:]}
        past = todo_history.c
        return [
            update(todos).where(*self.here(), todos.c.number == item.number, holds).values(updated_at=now, **values),
            self._remembered([item], now, holds),
            delete(todo_history).where(
                *self._past(), past.number == item.number, past.version <= item.version - VERSIONS, holds
            ),
        ]

    def deleted(self, number: int, now: datetime, holds: Condition) -> list[Any]:
        """Return the statements that delete an item and its parts, and forget those that went long ago."""
        which = [*self.here(), or_(todos.c.number == number, todos.c.parent == number)]
        row = select(
            *self._owner(), todos.c.number, todos.c.version + 1, literal(None, Text()), *_moments(now), self._call()
        ).where(*which, holds)
        past, gone = todo_history.c, todo_history.alias("gone")
        # A number is never given again, so that what was deleted stays so.
        long_ago = select(gone.c.number).where(
            *self._past(gone), gone.c.definition.is_(None), gone.c.changed_at < now - REMEMBERED
        )
        return [
            insert(todo_history).from_select(_HISTORY, row, include_defaults=False),
            delete(todos).where(*which, holds),
            delete(todo_history).where(*self._past(), past.number.in_(long_ago), holds),
        ]

    def here(self) -> list[Condition]:
        """Return the conditions: this user's and row's."""
        return [todos.c.tenant == self._store.tenant, todos.c.tool_id == self._store.tool_id]

    async def _items(self, statement: Any) -> list[TodoItem]:
        return [TodoItem(*row) for row in await self._store.read(statement)]

    def _columns(self) -> list[Any]:
        return [todos.c[name] for name in _ITEM]

    def _past(self, table: Any = todo_history) -> list[Condition]:
        return [table.c.tenant == self._store.tenant, table.c.tool_id == self._store.tool_id]

    def _owner(self) -> list[Any]:
        return [literal(self._store.tenant, Key()), literal(self._store.tool_id, Key())]

    def _call(self) -> Any:
        return literal(self._by_call, Text())

    def _remembered(self, items: Sequence[TodoItem], now: datetime, holds: Condition) -> Any:
        rows = [
            select(
                *self._owner(),
                *(literal(number, Integer()) for number in (item.number, item.version)),
                literal(msgspec.json.encode(item).decode(), Text()),
                *_moments(now),
                self._call(),
            ).where(holds)
            for item in items
        ]
        return insert(todo_history).from_select(_HISTORY, _together(rows), include_defaults=False)


_HISTORY: Final = ("tenant", "tool_id", "number", "version", "definition", "changed_at", "by_call")


def _together(rows: list[Any]) -> Any:
    return rows[0] if len(rows) == 1 else union_all(*rows)


def _values(item: TodoItem) -> list[Any]:
    return [
        literal(item.number, Integer()),
        literal(item.title, Text()),
        literal(item.done, Boolean()),
        literal(item.priority, Integer()),
        literal(item.due_at, Utc()),
        literal(item.parent, Integer()),
        literal(item.version, Integer()),
    ]


def _moments(*moments: datetime) -> list[Any]:
    return [literal(moment, Utc()) for moment in moments]


def _defined(text: str | None) -> TodoItem | None:
    return None if text is None else msgspec.json.decode(text, type=TodoItem)
