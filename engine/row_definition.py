"""What of a tool row is kept as JSON, its versions, and a row as it is shown to somebody who may use it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from engine.rows import ActionSettings, ToolRow

__all__ = ("Held", "KeptRow", "Role", "RowDefinition", "RowVersion")

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
    """

    row: ToolRow
    role: Role
    has_secrets: bool
    created_at: datetime
    updated_at: datetime

    def __repr__(self) -> str:
        return f"<KeptRow {self.row!r} {self.role}{', secrets' if self.has_secrets else ''}>"


class Held(msgspec.Struct, frozen=True):
    """A row as its owner keeps it, sealed credentials included, and what a user is to it."""

    row: ToolRow
    role: Role
    created_at: datetime
    updated_at: datetime

    @property
    def shown(self) -> KeptRow:
        """The row as it is shown."""
        return KeptRow(
            row=replace(self.row, credentials=None),
            role=self.role,
            has_secrets=self.row.credentials is not None,
            created_at=self.created_at,
            updated_at=self.updated_at,
        )
