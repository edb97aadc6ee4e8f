"""Which rows a turn has: explicit ids, a user's, the defaults, and the client's own (BEHAVIOUR 67, 68)."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Sequence
from typing import Any

import anyio
import msgspec

from engine.actions import resolve_actions
from engine.client_tools import resolve_client_tools
from engine.context import CallContext
from engine.contract import Scope, Tool
from engine.discovery import ToolManager
from engine.loading import reason_of
from engine.rows import ToolRow
from engine.toolset import Member, Toolset
from events.errors import Refused

__all__ = ("Toolsets",)

_log = logging.getLogger("calljournal.toolsets")
_KEPT = 256
_METADATA_TIME = 30.0
_Choice = tuple[Any, ...]


class Toolsets:
    """Resolves contexts to toolsets; one that was resolved before is the same object again.

    :param rows: the stored rows, in order
    :param defaults: the synthesised rows that every turn without an agent has
    """

    def __init__(self, manager: ToolManager, rows: Sequence[ToolRow], defaults: Sequence[ToolRow]) -> None:
        self._manager = manager
        self._rows = tuple(rows)
        self._by_id = {row.id: row for row in (*defaults, *rows)}
        if len({row.id for row in rows}) < len(rows):
            raise Refused("two tool rows have the same id; give each its own")
        self._defaults = tuple(defaults)
        self._members: dict[tuple[str, int], Member | None] = {}
        self._known: dict[_Choice, Toolset] = {}

    async def resolve(self, context: CallContext) -> Toolset:
        """Return the turn's toolset; a row whose tool is not there is left out and logged."""
        choice = (
            context.user_id,
            None if context.tool_ids is None else tuple(context.tool_ids),
            context.agent_id is None,
            context.headless,
        )
        toolset = self._known.get(choice)
        if toolset is None:
            members = [member for row in self._chosen(context) if (member := await self._member(row, context))]
            toolset = self._keep(choice, Toolset(tuple(members)))
        if not context.client_tools:
            return toolset
        return self._with_clients(choice, toolset, context)

    def _with_clients(self, choice: _Choice, toolset: Toolset, context: CallContext) -> Toolset:
        """Add the client's tools; the calls of a turn bring the same ones again and again."""
        try:
            choice = (*choice, msgspec.json.encode(context.client_tools))
        except (TypeError, ValueError, RecursionError):
            return Toolset((*toolset.members, *_client_members(context)))
        known = self._known.get(choice)
        if known is None:
            known = self._keep(choice, Toolset((*toolset.members, *_client_members(context))))
        return known

    def _keep(self, choice: _Choice, toolset: Toolset) -> Toolset:
        while len(self._known) >= _KEPT:
            del self._known[next(iter(self._known))]
        self._known[choice] = toolset
        return toolset

    def has(self, tool_id: str) -> bool:
        """Return whether there is a row of this id, whoever owns it."""
        return tool_id in self._by_id

    async def fresh(self, tool_id: str) -> Member | None:
        """Return a row as it is defined at this moment, its tool asked anew; None where it is gone, or broken."""
        row = self._by_id.get(tool_id)
        return None if row is None else await self._read(row)

    def _chosen(self, context: CallContext) -> list[ToolRow]:
        if context.tool_ids is not None:
            return [self._by_id[tool_id] for tool_id in dict.fromkeys(context.tool_ids) if tool_id in self._by_id]
        own = [row for row in self._rows if row.user_id is None or row.user_id == context.user_id]
        return own if context.agent_id is not None else [*own, *self._defaults]

    async def _member(self, row: ToolRow, context: CallContext) -> Member | None:
        key = (row.id, row.version)
        if key not in self._members:
            self._members[key] = await self._read(row)
        member = self._members[key]
        if member is None or member.tool is None:
            return None
        return None if context.headless and not member.tool.headless_allowed else member

    async def _read(self, row: ToolRow) -> Member | None:
        try:
            tool = self._manager.load_tool(row.name)
            metadata = [] if tool.actions_in_config else await _metadata(tool, row)
            actions = resolve_actions(row, tool, metadata)
            return Member.of(row, tool, actions)
        except Exception as error:
            # A broken tool must not take the others with it; the call that names it is told.
            _log.warning("tool row %s (%s) is left out: %s", row.id, row.name, reason_of(error, row.config))
            return None


async def _metadata(tool: type[Tool], row: ToolRow) -> Any:
    instance = tool(row.config, Scope(user_id=row.user_id, owner=row.user_id, tool_id=row.id))
    metadata = instance.get_actions_metadata()
    if not inspect.isawaitable(metadata):
        return metadata
    with anyio.fail_after(_METADATA_TIME):
        return await metadata


def _client_members(context: CallContext) -> list[Member]:
    return [
        Member.of(row, None, (action,)) for row, action in resolve_client_tools(context.client_tools, context.user_id)
    ]
