"""One change of a stored row: what of it is to be another thing, and who may want that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypedDict

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from engine.bare_secrets import check_values
from engine.credentials import Credentials
from engine.row_definition import Held
from engine.row_tools import RowTools
from engine.rows import ActionSettings, ToolRow
from events.errors import Refused
from events.keys import require_storable

__all__ = ("RowChanges", "RowEdit", "require_label", "same")

_LONGEST_LABEL: Final = 400


class RowChanges(TypedDict, total=False):
    """What of a row may be changed by ``Rows.edit``; what is left out stays.

    :ivar config: the whole configuration; secrets in it are sealed
    :ivar secrets: these are sealed, those of None forgotten, the others stay
    :ivar replace_secrets: forget every other secret, whether it can still be opened or not
    :ivar actions: what the owner says of its actions; None: they are as its tool has them
    :ivar actions_metadata: what its tool said of its actions; None: it is asked each time
    """

    label: str
    active: bool
    config: dict[str, Any]
    secrets: Credentials
    replace_secrets: bool
    actions: Sequence[ActionSettings] | None
    actions_metadata: Sequence[dict[str, Any]] | None


class RowEdit(msgspec.Struct, frozen=True, kw_only=True):
    """The same with UNSET for what is left out."""

    label: str | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    config: dict[str, Any] | UnsetType = UNSET
    secrets: Credentials | UnsetType = UNSET
    replace_secrets: bool = False
    actions: Sequence[ActionSettings] | UnsetType | None = UNSET
    actions_metadata: Sequence[dict[str, Any]] | UnsetType | None = UNSET

    async def of(self, held: Held, tools: RowTools) -> ToolRow:
        """Return the row as it is to be, its secrets sealed.

        :raises Refused: if the user may not change that, or the row would not be right
        :raises CredentialsError: if its secrets do not open and some of them are to stay
        """
        self._require_allowed(held)
        row = held.row
        if not isinstance(self.label, UnsetType):
            require_label(self.label)
        plain = {"label": self.label, "active": self.active}
        row = replace(row, **{name: value for name, value in plain.items() if value is not UNSET})
        row = self._configured(row, tools)
        if not isinstance(self.actions_metadata, UnsetType):
            row = replace(row, actions_metadata=_list(self.actions_metadata))
        if not isinstance(self.actions, UnsetType):
            row = replace(row, actions=_list(self.actions))
            if held.role != "owner":
                _require_no_waiver(held.row, row)
            await tools.check_actions(row, compared=held.role == "owner")
        elif row.credentials != held.row.credentials:
            check_values(row, tools.secrets)
        return row

    @property
    def _changes_secrets(self) -> bool:
        return bool(self.secrets) or self.replace_secrets

    def _configured(self, row: ToolRow, tools: RowTools) -> ToolRow:
        if isinstance(self.config, UnsetType) and not self._changes_secrets:
            return row
        stored = {} if self.replace_secrets else tools.secrets(row)
        secrets = {key: value for key, value in {**stored, **(self.secrets or {})}.items() if value is not None}
        config = row.config if isinstance(self.config, UnsetType) else self.config
        blank = replace(row, config=config, credentials=None if self.replace_secrets else row.credentials)
        checked = tools.checked(blank, secrets)
        # What was said of its actions was another server's word.
        return checked if checked.config == row.config else replace(checked, actions_metadata=None)

    def _require_allowed(self, held: Held) -> None:
        if held.role == "owner":
            return
        if held.role == "viewer":
            raise Refused(f"tool row {held.row.id!r} is shared to you to be used; only its owner and editors change it")
        others = (self.label, self.active, self.config, self.actions_metadata)
        if self._changes_secrets or any(other is not UNSET for other in others):
            raise Refused(f"tool row {held.row.id!r} is shared to you; you may change its actions, its owner the rest")


def require_label(label: str) -> None:
    """Refuse what nobody could call a row. :raises Refused: if it is too long, or no line of text"""
    require_storable(label, "the label", _LONGEST_LABEL)
    if not label.isprintable():
        raise Refused("the label must be one line of printable text")


def same(one: Any, other: Any) -> bool:
    """Tell whether two rows, or settings, say the same in JSON: there neither ``true`` nor 1.0 is 1."""
    return bool(one == other) and _json(one) == _json(other)


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")


def _require_no_waiver(before: ToolRow, after: ToolRow) -> None:
    """Refuse that an editor waives an approval, or changes what its owner has waived one of, but to switch it off."""
    waived = [said for said in before.actions or () if said.require_approval is False]
    waived += [replace(said, active=False) for said in waived]
    for said in after.actions or ():
        if said.require_approval is False and not any(same(said, each) for each in waived):
            raise Refused(
                f"tool row {before.id!r} is shared to you: only its owner waives the approval of {said.name!r}, or "
                "changes what it is waived for; let it be asked for"
            )


def _list(items: Sequence[Any] | None) -> list[Any] | None:
    return None if items is None else list(items)
