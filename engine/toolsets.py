"""Which rows a turn has: explicit ids, a user's, the defaults, and the client's own (BEHAVIOUR 67, 68)."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable, Iterator, Sequence
from time import monotonic
from typing import Any, Final

import anyio
import msgspec
from msgspec.structs import replace

from engine.actions import resolve_actions
from engine.availability import Availability, can_tell
from engine.client_tools import resolve_client_tools
from engine.context import CallContext
from engine.contract import Tool
from engine.credentials import CredentialsError
from engine.defaults import selectable_row
from engine.discovery import ToolManager
from engine.loading import constructed, reason_of
from engine.opened_rows import has_credentials, opened, without_credentials
from engine.row_book import NOTHING_STORED, RowBook, StoredRows, Wanted
from engine.row_tools import RowTools
from engine.rows import ToolRow
from engine.services import Services
from engine.tool_policy import EVERYTHING, ToolPolicy, asking_first
from engine.toolset import Member, Toolset
from events.errors import NotFound, Refused

__all__ = ("Toolsets",)

_log = logging.getLogger("calljournal.toolsets")
_KEPT: Final = 256
_MEMBERS: Final = 4096
_METADATA_TIME: Final = 30.0
_RETRY: Final = 30.0
"""Seconds after which a row whose tool could not say what it has is asked again."""

_Choice = tuple[Any, ...]


class _Asked(msgspec.Struct, frozen=True):
    """What came of reading a row; None: nothing that can be used, as of a moment of the monotonic clock."""

    member: Member | None
    at: float = 0.0

    @property
    def stale(self) -> bool:
        return self.member is None and monotonic() > self.at + _RETRY


class Toolsets:
    """Resolves contexts to toolsets; one that was resolved before is the same object again.

    :param rows: the rows given in code, in order
    :param defaults: the synthesised rows that every turn without an agent has
    :param book: the rows that are stored in the journal
    :param policy: what the deployment says of tools
    :ivar tools: asks the rows' tools
    """

    def __init__(
        self,
        manager: ToolManager,
        rows: Sequence[ToolRow],
        defaults: Sequence[ToolRow],
        book: RowBook | None = None,
        services: Services | None = None,
        policy: ToolPolicy = EVERYTHING,
    ) -> None:
        self._manager = manager
        self._rows = tuple(rows)
        self._by_id = {row.id: row for row in (*defaults, *rows)}
        if len({row.id for row in rows}) < len(rows):
            raise Refused("two tool rows have the same id; give each its own")
        self._defaults = tuple(defaults)
        self._synthesised = frozenset(row.id for row in self._by_id.values() if row.synthesised)
        self._policy = policy
        self._book = book or RowBook(None)
        self._services = services or Services()
        self._members: dict[tuple[str, int], _Asked] = {}
        self._known: dict[_Choice, Toolset] = {}
        self._availability = self._services.shared(Availability)
        self.tools = RowTools(manager, self._services, policy)

    def begin(self, epoch: int) -> None:
        """Note the epoch at the start: at 0, no rows were ever stored."""
        self._book.begin(epoch)

    async def resolve(self, context: CallContext, *, now: bool = False) -> Toolset:
        """Return the turn's toolset; a row whose tool is not there is left out and logged.

        :param now: with the stored rows as of now, at the price of a read; else as of this engine's last append
        """
        stored = await self._stored(context, now) if self._book.keeps else NOTHING_STORED
        choice = (
            context.user_id,
            None if context.tool_ids is None else tuple(context.tool_ids),
            context.agent_id is None,
            context.headless,
            stored.stamp,
        )
        toolset = self._known.get(choice)
        if toolset is None or (toolset.unsettled and await self._has_changed(toolset)):
            toolset = self._keep(choice, await self._built(context, stored))
        if not context.client_tools:
            return toolset
        return self._with_clients(choice, toolset, context)

    async def _stored(self, context: CallContext, now: bool) -> StoredRows:
        if context.tool_ids is None:
            return await self._book.rows(Wanted(user_id=context.user_id), now=now)
        unknown = tuple([tool_id for tool_id in context.tool_ids if tool_id not in self._by_id])
        if not unknown and self._synthesised.isdisjoint(context.tool_ids):
            return NOTHING_STORED
        wanted = Wanted(user_id=context.user_id, ids=unknown, vouched=context.vouched, standings=True)
        return await self._book.rows(wanted, now=now)

    async def _built(self, context: CallContext, stored: StoredRows) -> Toolset:
        members: list[Member] = []
        broken: list[ToolRow] = []
        telling: dict[type[Tool], bool] = {}
        for chosen in self._chosen(context, stored):
            row = self._policy.applied(chosen, stored.standings)
            if row is None or await self._is_away(row, telling):
                continue
            member = await self.member(row)
            if member is None:
                broken.append(row)
            elif member.tool is not None and (member.tool.headless_allowed or not context.headless):
                members.append(member)
        return Toolset(tuple(members), tuple(broken), telling)

    async def _is_away(self, row: ToolRow, telling: dict[type[Tool], bool]) -> bool:
        """Tell whether a row's tool says that it cannot work now, and note what it says."""
        try:
            tool = self._manager.load_tool(row.name)
        except NotFound:
            return False
        if not can_tell(tool):
            return False
        telling[tool] = await self._availability.why_not(tool) is not None
        return telling[tool]

    async def _has_changed(self, toolset: Toolset) -> bool:
        """Tell whether a tool that was broken is to be asked again, or another can, or cannot, work by now."""
        if any(self._asked_again(row) for row in toolset.broken):
            return True
        for tool, was_away in toolset.telling.items():
            if (await self._availability.why_not(tool) is not None) is not was_away:
                return True
        return False

    def _with_clients(self, choice: _Choice, toolset: Toolset, context: CallContext) -> Toolset:
        """Add the client's tools; the calls of a turn bring the same ones again and again."""
        try:
            choice = (*choice, msgspec.json.encode(context.client_tools))
        except (TypeError, ValueError, RecursionError):
            return Toolset((*toolset.members, *_client_members(context)), toolset.broken)
        known = self._known.get(choice)
        if known is None or known.broken != toolset.broken or known.members[: len(toolset.members)] != toolset.members:
            known = self._keep(choice, Toolset((*toolset.members, *_client_members(context)), toolset.broken))
        return known

    def _keep(self, choice: _Choice, toolset: Toolset) -> Toolset:
        self._known.pop(choice, None)
        while len(self._known) >= _KEPT:
            del self._known[next(iter(self._known))]
        self._known[choice] = toolset
        return toolset

    async def current(self, row: ToolRow, context: CallContext) -> ToolRow | None:
        """Return a row of a turn as of this engine's last append; None: the turn has it no more."""
        if row.id not in self._by_id:
            return await self._current_stored(row, context)
        return await self._as_said(self._by_id[row.id], context.user_id, now=False)

    async def _current_stored(self, row: ToolRow, context: CallContext) -> ToolRow | None:
        if context.tool_ids is not None:
            return await self.row(row.id, context.user_id, vouched=context.vouched, now=False)
        # What a turn has of its own accord is only what its user has accepted.
        stored = await self._book.rows(Wanted(user_id=context.user_id))
        return next((kept for kept in stored.rows if kept.id == row.id and kept.active), None)

    def may_change(self, row: ToolRow) -> bool:
        """Tell whether a row may be another, or away, while the engine is open: stored ones, and built-ins."""
        return row.id not in self._by_id or (row.synthesised and self._book.keeps)

    def is_given(self, tool_id: str) -> bool:
        """Return whether there is a row of this id that is not stored in the journal, whoever owns it."""
        return tool_id in self._by_id

    async def row(self, tool_id: str, user_id: str | None, *, vouched: bool, now: bool = True) -> ToolRow | None:
        """Return a row as it is at this moment, if the user may use it: one given in code, a stored one, a built-in.

        :param vouched: an agent's list answers for it
        """
        row = self._by_id.get(tool_id) or selectable_row(self._manager, tool_id)
        if row is None:
            row = await self._book.row(tool_id, user_id, vouched=vouched, now=now)
            if row is None or not row.active:
                return None
        return await self._as_said(row, user_id, now=now)

    async def _as_said(self, row: ToolRow, user_id: str | None, *, now: bool) -> ToolRow | None:
        """Return a row as the deployment and the user let turns have it; None: they do not."""
        if row.synthesised and self._book.keeps:
            return self._policy.applied(row, await self._book.standings(user_id, now=now))
        return self._policy.applied(row)

    def is_sure(self, row: ToolRow, user_id: str | None) -> bool:
        """Tell, without reading, whether the deployment and the user are known to let turns have a row as it is."""
        if not (row.synthesised and self._book.keeps):
            return True
        said = self._book.last_standings(user_id)
        known = None if said is None else self._policy.applied(_plain(row), said)
        return known is not None and known.asks is row.asks

    async def fresh(self, row: ToolRow) -> Member | None:
        """Return a row with its actions as they are at this moment, its tool asked anew; None where that is broken.

        Where they are others than were known, the turns that follow are prepared from these.
        """
        member, key = await self._read(_plain(row)), (row.id, row.version)
        known = self._members.get(key)
        if (
            member is not None
            and known is not None
            and (known.member is None or known.member.actions != member.actions)
        ):
            self._members[key] = _Asked(member, monotonic())
            self._known = {choice: toolset for choice, toolset in self._known.items() if toolset.member(row.id) is None}
        return None if member is None else _asking(member, row)

    def _chosen(self, context: CallContext, stored: StoredRows) -> Iterable[ToolRow]:
        if context.tool_ids is not None:
            return self._listed(context.tool_ids, {row.id: row for row in stored.rows if row.active})
        own = [row for row in self._rows if row.active and (row.user_id is None or row.user_id == context.user_id)]
        own += [row for row in stored.rows if row.active and row.id not in self._by_id]
        if context.agent_id is not None:
            return own
        return [*own, *self._defaults]

    def _listed(self, ids: Sequence[str], stored: dict[str, ToolRow]) -> Iterator[ToolRow]:
        for tool_id in dict.fromkeys(ids):
            row = self._by_id.get(tool_id) or selectable_row(self._manager, tool_id) or stored.get(tool_id)
            if row is not None and row.active:
                yield row

    async def member(self, row: ToolRow) -> Member | None:
        """Return a row with its actions; its tool is asked once for each version. None: it is broken."""
        key = (row.id, row.version)
        known = self._members.get(key)
        if known is None or known.stale:
            known = _Asked(await self._read(_plain(row)), monotonic())
            while len(self._members) >= _MEMBERS:
                del self._members[next(iter(self._members))]
            self._members[key] = known
        return None if known.member is None else _asking(known.member, row)

    def _asked_again(self, row: ToolRow) -> bool:
        known = self._members.get((row.id, row.version))
        return known is None or known.stale

    async def _read(self, row: ToolRow) -> Member | None:
        asked = self._opened(row)
        try:
            tool = self._manager.load_tool(row.name)
            actions = resolve_actions(row, tool, await self._metadata(tool, asked))
            return Member.of(row, tool, actions)
        except Exception as error:
            # A broken tool must not take the others with it; the call that names it is told.
            _log.warning("tool row %s (%s) is left out: %s", row.id, row.name, reason_of(error, asked.config))
            return None

    def _opened(self, row: ToolRow) -> ToolRow:
        """Return a row as its tool is asked what it has: most can say that without credentials too."""
        if row.user_id is None and has_credentials(row):
            return without_credentials(row)
        try:
            return opened(row, self._services.vault, row.user_id)
        except CredentialsError as error:
            _log.warning("%s", error)
            return without_credentials(row)

    async def _metadata(self, tool: type[Tool], row: ToolRow) -> Any:
        if tool.actions_in_config:
            return []
        if row.actions_metadata is not None:
            return row.actions_metadata
        metadata = constructed(tool, row, row.user_id, self._services).get_actions_metadata()
        if not inspect.isawaitable(metadata):
            return metadata
        with anyio.fail_after(_METADATA_TIME):
            return await metadata


def _plain(row: ToolRow) -> ToolRow:
    return replace(row, asks=False) if row.asks else row


def _asking(member: Member, row: ToolRow) -> Member:
    return Member.of(row, member.tool, asking_first(member.actions)) if row.asks else member


def _client_members(context: CallContext) -> list[Member]:
    return [
        Member.of(row, None, (action,)) for row, action in resolve_client_tools(context.client_tools, context.user_id)
    ]
