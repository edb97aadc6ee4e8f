"""What a turn may use: its rows, their tools and actions, and the names the model sees (DESIGN 6, Tool rows)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from engine.actions import Action
from engine.contract import Tool
from engine.fingerprints import Fingerprints
from engine.offering import offered
from engine.remembered import NOTHING, ActionKey, Remembered, settled_names, still_there
from engine.rows import ToolRow
from engine.schemas import Prepared, present

__all__ = ("Member", "Toolset")

_KEPT = 64
_NONE_TELL: Mapping[type[Tool], bool] = MappingProxyType({})
_Kind = tuple[str, bool, tuple[tuple[str, ActionKey | None], ...]]


class Member(msgspec.Struct, frozen=True):
    """One row of a toolset with its tool (None: the caller runs it) and all its actions, inactive ones too."""

    row: ToolRow
    tool: type[Tool] | None
    actions: tuple[Action, ...]
    fingerprints: Mapping[str, str]

    @classmethod
    def of(cls, row: ToolRow, tool: type[Tool] | None, actions: tuple[Action, ...]) -> Member:
        """Bring a row together with its actions; their fingerprints are taken when they are first asked for."""
        return cls(row, tool, actions, Fingerprints(row, actions))

    def action(self, name: str) -> Action | None:
        """Return an active action of the row, or None."""
        return next((action for action in self.actions if action.name == name and action.active), None)


class Toolset:
    """The rows of one turn, in order; immutable, so that what is prepared from it is prepared once.

    :param broken: rows that would be of the turn if their tools were not broken
    :param telling: the tools that can tell whether they can work, and whether they said that they cannot
    :ivar unsettled: it may be another soon, though no row is another
    """

    def __init__(
        self,
        members: tuple[Member, ...],
        broken: tuple[ToolRow, ...] = (),
        telling: Mapping[type[Tool], bool] = _NONE_TELL,
    ) -> None:
        self.members = members
        self.broken = broken
        self.telling = telling
        self.unsettled = bool(broken or telling)
        self._rows = {member.row.id: member for member in members}
        self._offered = offered([action for member in members for action in member.actions])
        self._actions: dict[ActionKey, Action] | None = None
        self._prepared: dict[_Kind, Prepared] = {}
        self._names: dict[str, ActionKey] | None = None

    def __repr__(self) -> str:
        return f"<Toolset {len(self.members)} rows, {len(self._offered)} actions>"

    def prepared(self, family: str, *, strict: bool = False, remembered: Remembered = NOTHING) -> Prepared:
        """Return the function definitions for a family of providers, and the way back from their names.

        :param remembered: what the conversation has called: such names stay with their actions
        """
        plain = self._presented(family, strict)
        if not remembered.targets:
            return plain
        settled = settled_names(still_there(remembered, self._offered), plain.names)
        return self._presented(family, strict, settled) if settled else plain

    def _presented(
        self, family: str, strict: bool = False, settled: Mapping[str, ActionKey | None] | None = None
    ) -> Prepared:
        kind = (family, strict, tuple(settled.items()) if settled else ())
        known = self._prepared.get(kind)
        if known is None:
            known = present(self._offered, family, strict=strict, settled=settled)
            while len(self._prepared) >= _KEPT:
                del self._prepared[next(iter(self._prepared))]
            self._prepared[kind] = known
        return known

    def names(self, prepared: Prepared | None = None, remembered: Remembered = NOTHING) -> Mapping[str, ActionKey]:
        """Return what names mean: as prepared, else as a fresh preparation of any family would have it.

        Names that the conversation has called go on meaning what they meant, as long as it is there; with nothing
        prepared, one that meant something else never means another action.
        """
        if prepared is None and not remembered.targets:
            return self._fresh_names()
        leading = still_there(remembered, self._offered) if remembered.targets else {}
        there = {name: target for name, target in leading.items() if target is not None}
        if prepared is not None:
            return {**there, **prepared.names} if there else prepared.names
        names = dict(there)
        for family in ("openai", "google"):
            for name, target in self.prepared(family, remembered=remembered).names.items():
                names.setdefault(name, target)
        for name, target in self._fresh_names().items():
            if name not in leading:
                names.setdefault(name, target)
        return names

    def _fresh_names(self) -> Mapping[str, ActionKey]:
        if self._names is None:
            self._names = {**self.prepared("google").names, **self.prepared("openai").names}
        return self._names

    def callable_names(self, prepared: Prepared | None = None, remembered: Remembered = NOTHING) -> tuple[str, ...]:
        """Return the advertised names that this turn's tools answer to."""
        names = (prepared or self.prepared("openai", remembered=remembered)).names
        return tuple([name for name, (tool_id, action) in names.items() if self.action(tool_id, action) is not None])

    def member(self, tool_id: str) -> Member | None:
        """Return the row of this id, if the turn has it."""
        return self._rows.get(tool_id)

    def action(self, tool_id: str, name: str) -> Action | None:
        """Return an active action of a row, if the turn has it."""
        if self._actions is None:
            self._actions = {(action.tool_id, action.name): action for action in self._offered}
        return self._actions.get((tool_id, name))
