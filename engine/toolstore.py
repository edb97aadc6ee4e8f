"""A tool's way to the journal's database: the log's own store, with tenant and row bound."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from events.errors import Refused
from events.persistence import run_to_end
from events.store import Store

__all__ = ("BoundStore", "ReadingStore")


class BoundStore:
    """What a ``ToolContext`` offers as ``store`` (see ``engine.contract.ToolStore``)."""

    def __init__(self, store: Store, tenant: str, tool_id: str) -> None:
        self._store = store
        self.tenant = tenant
        self.tool_id = tool_id

    def __repr__(self) -> str:
        return f"<BoundStore of row {self.tool_id}>"

    @property
    def dialect(self) -> str:
        """The database's."""
        return str(self._store.dialect)

    async def read(self, statement: Any) -> Sequence[Any]:
        """Run one select and return its rows. :raises LogUnavailable: if the database cannot be read"""
        return await self._store.read(statement)

    async def write(self, *statements: Any) -> list[int]:
        """Run statements in one transaction; it ends before a cancellation takes effect.

        :raises LogUnavailable: if they were not written
        """
        return await run_to_end(partial(self._store.write, statements))


class ReadingStore(BoundStore):
    """The same for a tool that is only asked: it writes nothing."""

    async def write(self, *statements: Any) -> list[int]:  # noqa: ARG002
        """Refuse. :raises Refused: always"""
        raise Refused("a tool that is only asked something cannot write; let an action of it do that")
