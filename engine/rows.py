"""Tool rows: a configured tool as the owner keeps it (DESIGN 6, Tool rows)."""

from __future__ import annotations

from typing import Any

import msgspec

from events.errors import Refused
from events.keys import new_id

__all__ = ("ActionSettings", "ToolRow")


class ActionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the owner says of one action.

    ``presets`` are visible defaults, used where the model sends nothing; ``pinned`` values are hidden from the model
    and fixed; ``hidden`` properties are neither shown nor sent.

    :ivar require_approval: None: as the tool itself says; True: a person approves each call; False: the owner waives
        what the tool says of itself, and nothing else: not what it says at the moment of a call, and no policy
    """

    name: str
    active: bool = True
    description: str | None = None
    require_approval: bool | None = None
    presets: dict[str, Any] = {}
    pinned: dict[str, Any] = {}
    hidden: tuple[str, ...] = ()


class ToolRow(msgspec.Struct, frozen=True, kw_only=True):
    """A configured tool. ``user_id`` is its owner; ``actions`` None means all of its tool's actions, as they are.

    ``synthesised`` rows (defaults, built-ins) are the same type with a deterministic id. ``credentials`` are sealed for
    the owner and this row (``engine.credentials``). ``actions_metadata`` is what the
    tool's ``get_actions_metadata`` said when it was last asked: where it is given, the tool is not asked again.

    :ivar label: what its owner calls it
    :ivar active: may be used; one that is not is in no toolset
    :ivar asks: a person approves each call, whatever is said of its actions; only ``ToolPolicy`` says so

    :raises Refused: if a row is constructed without an id or a name
    """

    id: str
    name: str
    user_id: str | None = None
    config: dict[str, Any] = {}
    credentials: str | None = None
    actions: list[ActionSettings] | None = None
    version: int = 1
    label: str = ""
    active: bool = True
    actions_metadata: list[dict[str, Any]] | None = None
    synthesised: bool = False
    asks: bool = False
    client_side: bool = False

    def __post_init__(self) -> None:
        identity: object = self.id
        if not isinstance(identity, str) or not identity.strip():
            raise Refused(f"a tool row needs an id (its tool: {self.name!r}); give it one that never changes")
        name: object = self.name
        if not isinstance(name, str) or not name:
            raise Refused(f"tool row {self.id!r} needs the name of its tool")

    @classmethod
    def new(
        cls,
        name: str,
        *,
        config: dict[str, Any] | None = None,
        label: str = "",
        active: bool = True,
        actions: list[ActionSettings] | None = None,
    ) -> ToolRow:
        """Return a row with a new id, to be stored by ``engine.rows.add``.

        :param name: the tool's
        """
        return cls(id=new_id(), name=name, config=config or {}, label=label, active=active, actions=actions)

    def __repr__(self) -> str:
        owner = "nobody's" if self.user_id is None else f"{self.user_id}'s"
        return f"<ToolRow {self.id} {self.name} {owner} v{self.version}>"
