"""One wiki for one call: whose pages they are, who may change them, and one change after another."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Column, Connection, Select, and_, bindparam, func, select
from sqlalchemy.sql import ColumnElement

from engine.contract import Scope, ToolContext
from engine.row_store import granted
from engine.text_editing import EditError
from engine.tool_schema import wiki_links, wiki_pages, wiki_revisions
from engine.wiki.limits import LONGEST_WIKI
from events.errors import Refused
from events.keys import MAX_KEY_LENGTH, require_storable, tenant_column
from events.persistence import run_to_end

__all__ = ("Change", "Place", "Wiki", "beginning", "here", "hold")

T = TypeVar("T")
_LOCKS = 0x434A5749
_PATIENCE = "10s"


class Place(msgspec.Struct, frozen=True):
    """Where a wiki's pages are: its owner's column, and its name."""

    tenant: str
    name: str

    def of(self, table: Any) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
        """Return the conditions: this wiki's rows of a table."""
        return table.c.tenant == self.tenant, table.c.wiki == self.name

    @property
    def pages(self) -> tuple[ColumnElement[bool], ...]:
        """The conditions of its pages."""
        return self.of(wiki_pages)

    @property
    def revisions(self) -> tuple[ColumnElement[bool], ...]:
        """The conditions of its revisions."""
        return self.of(wiki_revisions)

    @property
    def links(self) -> tuple[ColumnElement[bool], ...]:
        """The conditions of its links."""
        return self.of(wiki_links)

    def at(self, path: str) -> dict[str, str]:
        """Return the values of :func:`here`."""
        return {"at_tenant": self.tenant, "at_wiki": self.name, "at_path": path}

    @property
    def lock(self) -> tuple[int, int]:
        """Two numbers for Postgres' advisory locks; two wikis that share them wait for each other, no more.

        The log's own locks are of one number, so no wiki's is taken for one of them.
        """
        name = f"{self.tenant}\0{self.name}".encode()
        return _LOCKS, int.from_bytes(blake2b(name, digest_size=4).digest(), signed=True)


class Change(msgspec.Struct, frozen=True):
    """A transaction that alone changes a wiki, and who makes it.

    :ivar author: the caller's id
    :ivar by_call: the journal key of the call
    """

    connection: Connection
    place: Place
    author: str | None
    by_call: str
    now: datetime

    @property
    def mine(self) -> tuple[ColumnElement[bool], ...]:
        """The conditions of the revisions that this very call made when it ran before."""
        revision = wiki_revisions.c
        return (
            *self.place.revisions,
            revision.by_call == self.by_call,
            revision.changed_by.is_not_distinct_from(self.author),
        )


class Wiki:
    """A wiki as one call may use it.

    :raises Refused: if its name cannot be one, or there is no database
    """

    def __init__(self, config: dict[str, Any], scope: Scope, context: ToolContext) -> None:
        name = config.get("wiki") or scope.tool_id
        if not isinstance(name, str):
            raise Refused("the wiki's name must be a text; look at its row's configuration")
        require_storable(name, "the wiki's name", LONGEST_WIKI if name != scope.tool_id else MAX_KEY_LENGTH)
        if scope.services.store is None:
            raise Refused("a wiki is kept in the journal's database; run its tool in an engine that has one")
        self.place = Place(tenant_column(scope.owner), name)
        self._scope = scope
        self._open = config.get("everyone_writes") is True
        self._by_call = context.idempotency_key

    def __repr__(self) -> str:
        return f"<Wiki {self.place.name}>"

    @property
    def dialect(self) -> str:
        """The database's: ``sqlite`` or ``postgresql``."""
        return str(self._scope.services.store.dialect)

    async def read(self, statement: Any) -> Sequence[Any]:
        """Run one select. :raises LogUnavailable: if the database cannot be read"""
        found: Sequence[Any] = await self._scope.services.store.read(statement)
        return found

    async def require_writer(self) -> None:
        """Refuse a caller who may not change the wiki; :meth:`change` looks again.

        :raises EditError: if it may not
        :raises LogUnavailable: if that cannot be read
        """
        if not self._is_writer and not await self.read(self._editing):
            raise _reader()

    async def change(self, work: Callable[[Change], T]) -> T:
        """Run ``work`` in a transaction that no other change of this wiki overlaps; it raises: nothing is changed.

        A cancellation takes effect when it has ended.

        :raises EditError: if the caller may not change the wiki at this moment
        :raises LogUnavailable: if nothing was written, or that is not known
        """

        def run(connection: Connection) -> T:
            hold(connection, self.place.tenant, self.place.name)
            if not self._is_writer and connection.execute(self._editing).first() is None:
                raise _reader()
            author = self._scope.user_id
            return work(Change(connection, self.place, author, self._by_call, datetime.now(UTC)))

        return await run_to_end(partial(self._scope.services.store.transact, run))

    @property
    def _is_writer(self) -> bool:
        return self._open or self._scope.user_id == self._scope.owner

    @property
    def _editing(self) -> Select[Any]:
        """The share that makes the caller an editor of the row."""
        shared = granted(tenant_column(self._scope.user_id), "editor").subquery()
        return select(shared.c.row_id).where(shared.c.row_id == self._scope.tool_id).limit(1)


def _reader() -> EditError:
    return EditError("You may read this wiki, not change it; its owner can make you an editor of it.")


def here(table: Any) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions of a statement that is made once, for one path at a time (see :meth:`Place.at`).

    To make a statement anew takes five times as long as to run one that is there.
    """
    names = ("tenant", "wiki", "path")
    return tuple([table.c[name] == bindparam(f"at_{name}") for name in names])


def beginning(column: Column[str] | ColumnElement[str], prefix: str) -> ColumnElement[bool]:
    """Return the condition that a text begins so, as a range that an index serves; nothing in it is a wildcard."""
    last = ord(prefix[-1]) + 1
    if last > sys.maxunicode:
        return and_(column >= prefix, beginning(column, prefix[:-1]))
    # No database holds the halves of surrogate pairs.
    after = prefix[:-1] + chr(0xE000 if 0xD800 <= last <= 0xDFFF else last)
    return and_(column >= prefix, column < after)


def hold(connection: Connection, tenant: str, name: str) -> None:
    """Wait until no other change of a wiki is under way. SQLite has one writer at a time as it is."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.set_config("lock_timeout", _PATIENCE, True)))
        connection.execute(select(func.pg_advisory_xact_lock(*Place(tenant, name).lock)))
