"""To-do items in the journal's database, and every version of each."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from engine.contract import ToolContext
from engine.todo_item import TodoItem
from engine.todo_limits import REMEMBERED, VERSIONS
from engine.tool_ledger import Sums
from engine.tool_sql import Sql

__all__ = ("StandingTodo", "TodoStore", "TodoVersion")

_ITEM: Final = "number, title, done, priority, due_at, parent, version"
_ONE: Final = Sql("SELECT {item} FROM todos WHERE {here} AND number = :number", moments=("due_at",), item=_ITEM)
_STANDING: Final = Sql(
    "SELECT ledger.entries, ledger.size, ledger.past, ledger.last, ledger.token, "
    "(SELECT count(*) FROM todos WHERE {here} AND parent = :number) AS parts, item.number, item.title, item.done, "
    "item.priority, item.due_at, item.parent, item.version FROM todos AS item "
    "JOIN tool_ledgers AS ledger ON ledger.tenant = item.tenant AND ledger.tool_id = item.tool_id "
    "WHERE item.tenant = :tenant AND item.tool_id = :tool_id AND item.number = :number",
    moments=("due_at",),
)
_PAGE: Final = Sql(
    "SELECT {item} FROM todos WHERE {here} AND number > :number ORDER BY number LIMIT :limit",
    moments=("due_at",),
    item=_ITEM,
)
_PAGE_OF: Final = Sql(
    "SELECT {item} FROM todos WHERE {here} AND number > :number AND done = :done ORDER BY number LIMIT :limit",
    moments=("due_at",),
    item=_ITEM,
)
_PARTS: Final = Sql(
    "SELECT {item} FROM todos WHERE {here} AND parent = :parent ORDER BY number LIMIT :limit",
    moments=("due_at",),
    item=_ITEM,
)
_VERSIONS: Final = Sql(
    "SELECT version, definition, changed_at, by_call FROM todo_history WHERE {here} AND number = :number "
    "ORDER BY version DESC",
    moments=("changed_at",),
)

_INSERTED: Final = Sql(
    "INSERT INTO todos (tenant, tool_id, {item}, created_at, updated_at) "
    "SELECT :tenant, :tool_id, :number, :title, :done, :priority, :due_at, :parent, :version, :now, :now WHERE {holds}",
    item=_ITEM,
)
_UPDATED: Final = Sql(
    "UPDATE todos SET title = :title, done = :done, priority = :priority, due_at = :due_at, parent = :parent, "
    "version = :version, updated_at = :now WHERE {here} AND number = :number AND {holds}"
)
_KEPT: Final = Sql(
    "INSERT INTO todo_history (tenant, tool_id, number, version, definition, changed_at, by_call) "
    "SELECT :tenant, :tool_id, :number, :version, :definition, :now, :by_call WHERE {holds}"
)
_TRIMMED: Final = Sql("DELETE FROM todo_history WHERE {here} AND number = :number AND version <= :upto AND {holds}")
_MARKED: Final = Sql(
    "INSERT INTO todo_history (tenant, tool_id, number, version, definition, changed_at, by_call) "
    "SELECT tenant, tool_id, number, version + 1, NULL, :now, :by_call FROM todos "
    "WHERE {here} AND (number = :number OR parent = :number) AND {holds}"
)
_DELETED: Final = Sql("DELETE FROM todos WHERE {here} AND (number = :number OR parent = :number) AND {holds}")
_FORGOTTEN: Final = Sql(
    "DELETE FROM todo_history WHERE {here} AND {holds} AND number IN (SELECT gone.number FROM todo_history AS gone "
    "WHERE gone.tenant = :tenant AND gone.tool_id = :tool_id AND gone.definition IS NULL AND gone.changed_at < :before)"
)
"""A number is never given again, so that what was deleted stays so."""


class TodoVersion(msgspec.Struct, frozen=True):
    """What an item was at a version; no item: it was deleted."""

    version: int
    item: TodoItem | None
    changed_at: datetime
    by_call: str | None


class StandingTodo(msgspec.Struct, frozen=True):
    """What a change of an item is decided on; ``parts``: how many items are parts of it."""

    sums: Sums
    item: TodoItem
    parts: int


class TodoStore:
    """Reads one user's items, and binds the statements that change them.

    Every method that reads raises LogUnavailable if the database cannot be read.
    """

    def __init__(self, context: ToolContext) -> None:
        self._store = context.store
        self._by_call = context.idempotency_key

    async def item(self, number: int) -> TodoItem | None:
        """Return an item, or None."""
        found = await self._items(_ONE, number=number)
        return found[0] if found else None

    async def standing(self, number: int) -> StandingTodo | None:
        """Return what a change of an item is decided on, as it was at one moment; None: there is no such item."""
        rows = await self._store.read(_STANDING.bind(self._store, number=number))
        return StandingTodo(Sums(*rows[0][:5]), _item(rows[0][6:]), rows[0][5]) if rows else None

    async def page(self, after: int, done: bool | None, limit: int) -> list[TodoItem]:
        """Return the items after a number, all or those of one status, in the order of their numbers."""
        if done is None:
            return await self._items(_PAGE, number=after, limit=limit)
        return await self._items(_PAGE_OF, number=after, done=done, limit=limit)

    async def parts(self, number: int, limit: int) -> list[TodoItem]:
        """Return the items that are parts of one."""
        return await self._items(_PARTS, parent=number, limit=limit)

    async def versions(self, number: int) -> list[TodoVersion]:
        """Return the versions of an item that are kept, the newest first."""
        rows = await self._store.read(_VERSIONS.bind(self._store, number=number))
        return [TodoVersion(row[0], _defined(row[1]), row[2], row[3]) for row in rows]

    def made(self, items: Sequence[TodoItem], now: datetime, token: str) -> list[Any]:
        """Return the statements of a change that make items."""
        return [
            each
            for item in items
            for each in (self._written(_INSERTED, item, now, token), self._kept(item, now, token))
        ]

    def changed(self, item: TodoItem, now: datetime, token: str) -> list[Any]:
        """Return the statements of a change that make an item what it is given as."""
        which = {"number": item.number, "upto": item.version - VERSIONS, "token": token}
        trimmed = [_TRIMMED.bind(self._store, **which)] if item.version > VERSIONS else []
        return [self._written(_UPDATED, item, now, token), self._kept(item, now, token), *trimmed]

    def deleted(self, number: int, now: datetime, token: str) -> list[Any]:
        """Return the statements of a change that delete an item and its parts, and forget those that went long ago."""
        return [
            _MARKED.bind(self._store, number=number, now=now, by_call=self._by_call, token=token),
            _DELETED.bind(self._store, number=number, token=token),
            _FORGOTTEN.bind(self._store, before=now - REMEMBERED, token=token),
        ]

    async def _items(self, statement: Sql, **values: Any) -> list[TodoItem]:
        rows = await self._store.read(statement.bind(self._store, **values))
        return [_item(row) for row in rows]

    def _written(self, statement: Sql, item: TodoItem, now: datetime, token: str) -> Any:
        return statement.bind(self._store, now=now, token=token, **msgspec.structs.asdict(item))

    def _kept(self, item: TodoItem, now: datetime, token: str) -> Any:
        text = msgspec.json.encode(item).decode()
        which = {"number": item.number, "version": item.version, "definition": text, "now": now, "token": token}
        return _KEPT.bind(self._store, by_call=self._by_call, **which)


def _item(row: Sequence[Any]) -> TodoItem:
    number, title, done, *rest = row
    return TodoItem(number, title, bool(done), *rest)


def _defined(text: str | None) -> TodoItem | None:
    return None if text is None else msgspec.json.decode(text, type=TodoItem)
