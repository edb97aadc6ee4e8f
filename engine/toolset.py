"""What a turn may use: its rows, their tools and actions, and the names the model sees (DESIGN 6, Tool rows)."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from engine.actions import Action
from engine.contract import Tool
from engine.offering import offered
from engine.rows import ToolRow
from engine.schemas import Prepared, present

__all__ = ("Member", "Toolset")

ActionKey = tuple[str, str]


class Member(msgspec.Struct, frozen=True):
    """One row of a toolset with its tool (None: the caller runs it) and all its actions, inactive ones too."""

    row: ToolRow
    tool: type[Tool] | None
    actions: tuple[Action, ...]
    fingerprints: Mapping[str, str]


class Toolset:
    """The rows of one turn, in order; immutable, so that what is prepared from it is prepared once."""

    def __init__(self, members: tuple[Member, ...]) -> None:
        self.members = members
        self._rows = {member.row.id: member for member in members}
        self._offered = offered(action for member in members for action in member.actions)
        self._actions: dict[ActionKey, Action] = {(action.tool_id, action.name): action for action in self._offered}
        self._prepared: dict[str, Prepared] = {}
        self._names: dict[str, ActionKey] | None = None
        self._callable: dict[int, tuple[str, ...]] = {}

    def __repr__(self) -> str:
        return f"<Toolset {len(self.members)} rows, {len(self._actions)} actions>"

    def prepared(self, family: str) -> Prepared:
        """Return the function definitions for a family of providers, and the way back from their names."""
        known = self._prepared.get(family)
        if known is None:
            known = self._prepared[family] = present(self._offered, family)
        return known

    def names(self, prepared: Prepared | None = None) -> Mapping[str, ActionKey]:
        """Return what names mean: as prepared, else as a fresh preparation of any family would have it."""
        if prepared is not None:
            return prepared.names
        if self._names is None:
            names = dict(self.prepared("openai").names)
            for name, target in self.prepared("google").names.items():
                names.setdefault(name, target)
            self._names = names
        return self._names

    def callable_names(self, prepared: Prepared | None = None) -> tuple[str, ...]:
        """Return the advertised names that this turn's tools answer to."""
        names = self.prepared("openai").names if prepared is None else prepared.names
        return tuple([name for name, target in names.items() if target in self._actions])

    def member(self, tool_id: str) -> Member | None:
        """Return the row of this id, if the turn has it."""
        return self._rows.get(tool_id)

    def action(self, tool_id: str, name: str) -> Action | None:
        """Return an active action of a row, if the turn has it."""
        return self._actions.get((tool_id, name))
