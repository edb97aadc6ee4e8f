"""``engine.rows.built_ins``: what users say of the built-in tools that nobody stored."""

from __future__ import annotations

from functools import partial
from typing import Literal

import msgspec

from engine.availability import Availability
from engine.row_tools import RowTools
from engine.rows import ToolRow
from engine.tool_policy import Standings, ToolStanding, stricter
from events.errors import Refused
from events.keys import require_storable
from events.persistence import run_to_end
from events.store import Store

__all__ = ("BuiltIn", "BuiltIns")


class BuiltIn(msgspec.Struct, frozen=True, kw_only=True):
    """A built-in tool as a user has it.

    :ivar id: of the row that nobody stored
    :ivar default: it is in every turn without an agent
    :ivar standing: what holds: the stricter of what the deployment and the user say
    :ivar set_by: whose word that is; None: nobody's
    :ivar unavailable: why it cannot work at present; None: it can
    """

    id: str
    name: str
    default: bool
    standing: ToolStanding = "on"
    set_by: Literal["deployment", "user"] | None = None
    unavailable: str | None = None


class BuiltIns:
    """What each user says of built-in tools, in one journal. A change holds at the next call of every worker."""

    def __init__(self, store: Store, tools: RowTools) -> None:
        self._store = store
        self._tools = tools

    def __repr__(self) -> str:
        return f"<BuiltIns of {self._store!r}>"

    async def list(self, *, user_id: str | None) -> list[BuiltIn]:
        """Return every built-in tool that the deployment permits, as a user has it, those that are off too.

        :raises LogUnavailable: if what the user says cannot be read
        """
        said = await self._said(user_id)
        return [await self._shown(row, said) for row in self._tools.built_ins().values()]

    async def set(self, name: str, standing: ToolStanding, *, user_id: str | None) -> BuiltIn:
        """Say that a tool is off, asks first, or is on again for a user, and return it as that user has it then.

        In its agents' turns too. What the deployment says holds as well: nobody opens what that has closed.

        :raises Refused: if there is no such built-in tool
        :raises LogUnavailable: if it was not written, or that is not known
        """
        from engine.share_changes import write_standing

        require_storable(user_id, "the user id")
        known = self._tools.built_ins()
        if name not in known:
            raise Refused(f"there is no built-in tool {name!r} (there are: {', '.join(known) or 'none'})")
        if standing not in ("on", "off", "ask"):
            raise Refused(f"a built-in tool is on, off, or asks (ask); not {standing!r}")
        await run_to_end(partial(self._store.transact, lambda c: write_standing(c, user_id, name, standing)))
        return await self._shown(known[name], await self._said(user_id))

    async def _said(self, user_id: str | None) -> Standings:
        from engine.row_store import read_standings

        require_storable(user_id, "the user id")
        return await read_standings(self._store, user_id)

    async def _shown(self, row: ToolRow, said: Standings) -> BuiltIn:
        tool = self._tools.tool_of(row)
        deployment, own = self._tools.policy.standing.get(row.name), said.get(row.name)
        standing = stricter(deployment or "on", own or "on")
        set_by: Literal["deployment", "user"] | None = None
        if standing == deployment:
            set_by = "deployment"
        elif own is not None:
            set_by = "user"
        return BuiltIn(
            id=row.id,
            name=row.name,
            default=tool.default_on or deployment == "on",
            standing=standing,
            set_by=set_by,
            unavailable=await self._tools.services.shared(Availability).why_not(tool),
        )
