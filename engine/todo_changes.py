"""Changes of one user's to-do list: numbers are given in order and never again, and no change is lost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from engine.contract import ToolContext
from engine.text_editing import EditError
from engine.todo_item import TodoItem
from engine.todo_limits import TODOS
from engine.todo_store import StandingTodo, TodoStore
from engine.tool_ledger import Planned, change, sums_of

__all__ = ("TodoChanges",)


class TodoChanges:
    """Makes changes.

    Every method raises EditError where a change cannot be made, Unavailable where others are faster every time, and
    LogUnavailable where the database cannot be read or written; then nothing is changed.
    """

    def __init__(self, context: ToolContext) -> None:
        self._store = context.store
        self.items = TodoStore(context)

    async def create(self, wanted: Sequence[TodoItem]) -> list[TodoItem]:
        """Make items and return them with their numbers; those they have do not matter."""

        async def plan(token: str) -> Planned[list[TodoItem]]:
            before = await sums_of(self._store)
            if before.entries + len(wanted) > TODOS:
                raise EditError(f"Too many todos: at most {TODOS} are kept. Delete some that are completed.")
            for parent in {item.parent for item in wanted if item.parent is not None}:
                await self._check_parent(parent)
            items = [replace(item, number=number) for number, item in enumerate(wanted, before.last + 1)]
            after = replace(before, entries=before.entries + len(items), last=items[-1].number)
            return Planned(items, before, after, tuple(self.items.made(items, datetime.now(UTC), token)))

        return await change(self._store, plan)

    async def update(self, number: int, **changed: Any) -> TodoItem:
        """Change fields of an item and return it as it is then."""

        async def plan(token: str) -> Planned[TodoItem]:
            standing = await self._standing(number)
            parent = changed.get("parent")
            if parent is not None:
                await self._check_parent(parent)
                if parent == number or standing.parts:
                    raise EditError(f"Todo {number} cannot be part of itself, nor of another while it has parts.")
            after = replace(standing.item, **changed)
            if after == standing.item:
                return Planned(after)
            after = replace(after, version=after.version + 1)
            statements = self.items.changed(after, datetime.now(UTC), token)
            return Planned(after, standing.sums, standing.sums, tuple(statements))

        return await change(self._store, plan)

    async def delete(self, number: int, recursive: bool) -> None:
        """Delete an item, with its parts if there are any and ``recursive``."""

        async def plan(token: str) -> Planned[None]:
            standing = await self._standing(number)
            before, parts = standing.sums, standing.parts
            if parts and not recursive:
                raise EditError(f"Todo {number} has {parts} part(s); to delete them too, set recursive: true.")
            after = replace(before, entries=before.entries - 1 - parts)
            return Planned(None, before, after, tuple(self.items.deleted(number, datetime.now(UTC), token)))

        await change(self._store, plan)

    async def _standing(self, number: int) -> StandingTodo:
        standing = await self.items.standing(number)
        if standing is None:
            raise EditError(f"Todo with ID {number} not found.")
        return standing

    async def found(self, number: int) -> TodoItem:
        """Return an item. :raises EditError: if there is none"""
        item = await self.items.item(number)
        if item is None:
            raise EditError(f"Todo with ID {number} not found.")
        return item

    async def _check_parent(self, number: int) -> None:
        parent = await self.found(number)
        if parent.parent is not None:
            raise EditError(f"Todo {number} is itself part of [{parent.parent}], so nothing can be part of it.")
