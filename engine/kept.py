"""``engine.kept``: what tools keep of a user, for who wants to see, take along or erase it.

The journal itself is no part of it: it is append-only, and has the arguments and results of the calls by which things
were kept (see docs/memory.md).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, Literal

import msgspec

from engine.discovery import ToolManager
from engine.keeping import Keeping
from engine.row_tools import RowTools
from events.errors import NotFound
from events.keys import require_storable, tenant_column
from events.persistence import run_to_end
from events.store import Store

__all__ = ("Erased", "Kept", "KeptPlace", "KeptRecord", "keepings")


class KeptPlace(msgspec.Struct, frozen=True, kw_only=True):
    """What one tool row keeps of a user, or one part of it.

    :ivar row: the row's id, whether there is still such a row or not; of a wiki: its name
    :ivar part: whose part it is where the row's ``scope`` is agent or conversation; None: the user's in all
    :ivar items: how many files, notes, items or pages there are
    :ivar size: the bytes of what they say
    :ivar versions: how many versions are kept, current ones too; ``past`` is their bytes
    """

    tool: str
    row: str
    part: str | None
    items: int
    size: int
    versions: int
    past: int


class KeptRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One thing as it is (``item``), or as it was (``version``); ``content`` is everything that is kept of it."""

    tool: str
    row: str
    part: str | None
    kind: Literal["item", "version"]
    content: dict[str, Any]


class Erased(msgspec.Struct, frozen=True, kw_only=True):
    """What was erased at one place."""

    tool: str
    row: str
    part: str | None
    items: int
    versions: int


class Kept:
    """What tools keep in one journal's database. Every method speaks of one user; None: of what is nobody's.

    It goes by what is there: of a row that was removed too, and whatever the deployment says of its tool.
    """

    def __init__(self, store: Store, tools: RowTools) -> None:
        self._store = store
        self._tools = tools

    def __repr__(self) -> str:
        return f"<Kept in {self._store!r}>"

    async def export(
        self, *, user_id: str | None, tool: str | None = None, row: str | None = None, history: bool = False
    ) -> AsyncGenerator[KeptRecord, None]:
        """Yield everything that is kept of a user, a page of it in memory at a time.

        What is changed meanwhile is yielded as it was, or as it is then. Leave it early by ``contextlib.aclosing``.

        :param tool: only by this tool
        :param row: only of this row
        :param history: with what each thing said at each version, deleted ones too
        :raises NotFound: if there is no such tool, or it keeps nothing
        :raises Refused: if an id cannot be stored
        :raises LogUnavailable: if it cannot be read
        """
        from engine.kept_tables import content_of

        tenant, keepings = _tenant(user_id, row), self._keepings()
        for place in await self.list(user_id=user_id, tool=tool, row=row):
            whose, keeping = _joined(place), keepings[place.tool]
            kinds: list[tuple[Literal["item", "version"], Any]] = [("item", keeping.items)]
            kinds += [("version", keeping.past)] if history else []
            for kind, table in kinds:
                async with aclosing(content_of(self._store, keeping, table, tenant, whose)) as rows:
                    async for content in rows:
                        yield KeptRecord(tool=place.tool, row=place.row, part=place.part, kind=kind, content=content)

    async def erase(self, *, user_id: str | None, tool: str | None = None, row: str | None = None) -> list[Erased]:
        """Erase what is kept of a user, its history included, and return how much that was.

        In steps, each a transaction after which search and sums are right. Calls that are made meanwhile may keep
        something again; what is there when it begins is gone at the end. Cancelled or failed, do it again.

        :param tool: only by this tool
        :param row: only of this row
        :raises NotFound: if there is no such tool, or it keeps nothing
        :raises Refused: if an id cannot be stored
        :raises LogUnavailable: if it was not erased, or not all of it, or that is not known
        """
        from engine.kept_tables import erase_some, forget_empty

        tenant, keepings, done = _tenant(user_id, row), self._keepings(), []
        for place in await self.list(user_id=user_id, tool=tool, row=row):
            some = partial(erase_some, keepings[place.tool], tenant, _joined(place))
            items, versions, is_all = 0, 0, False
            while not is_all:
                more = await run_to_end(partial(self._store.transact, some))
                items, versions, is_all = items + more.items, versions + more.versions, more.is_all
            done.append(Erased(tool=place.tool, row=place.row, part=place.part, items=items, versions=versions))
        if tool is None and keepings:
            forget = partial(forget_empty, tuple(keepings.values()), tenant, row)
            await run_to_end(partial(self._store.transact, forget))
        return done

    async def list(self, *, user_id: str | None, tool: str | None = None, row: str | None = None) -> list[KeptPlace]:
        """Return what is kept of a user, by tool, row and part.

        :param tool: only by this tool
        :param row: only of this row
        :raises NotFound: if there is no such tool, or it keeps nothing
        :raises Refused: if an id cannot be stored
        :raises LogUnavailable: if it cannot be read
        """
        from engine.kept_tables import measured

        tenant, found = _tenant(user_id, row), []
        keepings = self._keepings()
        if keepings and tool is not None and tool not in keepings:
            raise NotFound(f"there is no tool {tool!r} that keeps anything (there are: {', '.join(sorted(keepings))})")
        for name, keeping in keepings.items():
            if tool not in (None, name):
                continue
            for whose, sums in sorted((await measured(self._store, keeping, tenant)).items()):
                kept_row, part = _split(keeping, whose)
                if row in (None, kept_row):
                    found.append(KeptPlace(tool=name, row=kept_row, part=part, **sums))
        return found

    def _keepings(self) -> dict[str, Keeping]:
        return {} if self._store.dialect == "null" else keepings(self._tools.manager)


def keepings(manager: ToolManager) -> dict[str, Keeping]:
    """Return what tools say of where they keep things, by the tool's name; those that share tables count once."""
    found: dict[str, Keeping] = {}
    for name, tool in manager.load_tools().items():
        said: Callable[[], Keeping] | None = getattr(tool, "keeping", None)
        keeping = None if said is None else said()
        if keeping is not None and all(keeping.items is not known.items for known in found.values()):
            found[name] = keeping
    return found


def _tenant(user_id: str | None, row: str | None) -> str:
    require_storable(user_id, "the user id")
    require_storable(row, "the row id")
    return tenant_column(user_id)


def _split(keeping: Keeping, whose: str) -> tuple[str, str | None]:
    """Return a row and its part: a wiki's name may have any sign in it, and has no parts."""
    if keeping.whose != "tool_id":
        return whose, None
    row, at, part = whose.partition("@")
    return row, part if at else None


def _joined(place: KeptPlace) -> str:
    return place.row if place.part is None else f"{place.row}@{place.part}"
