"""What of a tool row is kept as JSON, its versions, and a row as it is shown to somebody who may use it.

Of an action's settings, ``require_approval: false`` has always been written where nobody asked for an approval, so it
is no waiver: that is ``approval_waived``, which an older release does not know, and so asks as the tool says.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from engine.rows import ActionSettings, ToolRow

__all__ = ("Held", "KeptRow", "Role", "RowDefinition", "RowVersion", "decoded_definition", "encoded_definition")

Role: TypeAlias = Literal["owner", "editor", "viewer"]
"""What a user is to a row: its owner may do everything, an editor changes its actions, a viewer uses it."""


class RowDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """What of a row is kept as JSON: all but who owns it, its secrets and its version."""

    name: str
    label: str = ""
    active: bool = True
    config: dict[str, Any] = {}
    actions: list[ActionSettings] | None = None
    actions_metadata: list[dict[str, Any]] | None = None

    @classmethod
    def of(cls, row: ToolRow) -> RowDefinition:
        """Return the definition of a row."""
        return cls(**{name: getattr(row, name) for name in cls.__struct_fields__})


class _KeptSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of an action as they are kept: see the module."""

    name: str
    active: bool = True
    description: str | None = None
    require_approval: bool = False
    approval_waived: bool | UnsetType = UNSET
    presets: dict[str, Any] = {}
    pinned: dict[str, Any] = {}
    hidden: tuple[str, ...] = ()

    @classmethod
    def of(cls, said: ActionSettings) -> _KeptSettings:
        own = {name: getattr(said, name) for name in ActionSettings.__struct_fields__}
        # Another thing than the three goes on as it is, to be refused.
        asks = False if said.require_approval is None else said.require_approval
        return cls(**own | {"require_approval": asks}, approval_waived=said.require_approval is False or UNSET)

    @property
    def settings(self) -> ActionSettings:
        own = {name: getattr(self, name) for name in ActionSettings.__struct_fields__}
        waives = False if self.approval_waived is True else None
        return ActionSettings(**own | {"require_approval": self.require_approval or waives})


class _KeptDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A definition as it is kept."""

    name: str
    label: str = ""
    active: bool = True
    config: dict[str, Any] = {}
    actions: list[_KeptSettings] | None = None
    actions_metadata: list[dict[str, Any]] | None = None


def encoded_definition(row: ToolRow) -> str:
    """Return the definition of a row as it is kept.

    :raises msgspec.ValidationError: if it could not be read again
    :raises TypeError: if it has no JSON form
    :raises ValueError: if it has no JSON form
    :raises RecursionError: if it has no JSON form
    """
    own = {name: getattr(row, name) for name in RowDefinition.__struct_fields__}
    actions = None if row.actions is None else [_KeptSettings.of(said) for said in row.actions]
    text = msgspec.json.encode(_KeptDefinition(**own | {"actions": actions})).decode()
    msgspec.json.decode(text, type=_KeptDefinition)
    return text


def decoded_definition(text: str) -> RowDefinition:
    """Return a definition that was kept. :raises msgspec.DecodeError: if this release cannot read it"""
    kept = msgspec.json.decode(text, type=_KeptDefinition)
    own = {name: getattr(kept, name) for name in RowDefinition.__struct_fields__}
    actions = None if kept.actions is None else [said.settings for said in kept.actions]
    return RowDefinition(**own | {"actions": actions})


class RowVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a row; secrets are in none.

    :ivar definition: None: the row was removed
    :ivar changed_by: who made it, as told
    """

    version: int
    definition: RowDefinition | None
    changed_at: datetime
    changed_by: str | None = None


class KeptRow(msgspec.Struct, frozen=True, kw_only=True):
    """A stored row as one of its users sees it.

    :ivar row: without its credentials, whoever looks
    :ivar role: what the user is to it
    :ivar has_secrets: there are credentials
    :ivar accepted: it may be in the user's turns; else it waits, see ``engine.rows.offers``
    """

    row: ToolRow
    role: Role
    has_secrets: bool
    created_at: datetime
    updated_at: datetime
    accepted: bool = True

    def __repr__(self) -> str:
        more = (", secrets" if self.has_secrets else "") + ("" if self.accepted else ", waits")
        return f"<KeptRow {self.row!r} {self.role}{more}>"


class Held(msgspec.Struct, frozen=True):
    """A row as its owner keeps it, sealed credentials included, and what a user is to it."""

    row: ToolRow
    role: Role
    created_at: datetime
    updated_at: datetime
    accepted: bool = True

    @property
    def shown(self) -> KeptRow:
        """The row as it is shown."""
        return KeptRow(
            row=replace(self.row, credentials=None),
            role=self.role,
            has_secrets=self.row.credentials is not None,
            created_at=self.created_at,
            updated_at=self.updated_at,
            accepted=self.accepted,
        )
