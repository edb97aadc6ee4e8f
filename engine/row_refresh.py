"""A row's tool asked anew what it can do, and that kept with the row (TOOLS 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from engine.configured_rows import Rows
from engine.rows import ToolRow
from events.errors import Refused

__all__ = ("Refreshed", "refresh")


class Refreshed(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a row's actions, by name.

    :ivar row: as it is now
    :ivar changed: those of which the tool says something else than before; what was approved of them is asked again
    :ivar same: how many are as they were
    """

    row: ToolRow
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    same: int = 0


async def refresh(
    rows: Rows, row_id: str, *, user_id: str | None, by: str | None = None, keep: bool = True
) -> Refreshed:
    """Ask a row's tool what it can do, and keep the whole answer: until the next refresh nobody else is asked.

    What the owner says of an action stays, even of one that is gone: it may come back.

    :param keep: False: only compare
    :raises NotFound: if the user has no such row
    :raises Conflict: if the row was changed meanwhile
    :raises Refused: if the user does not own it, its actions are its own configuration, or its tool does not say
    :raises LogUnavailable: if it was not written, or that is not known
    """
    from engine.row_changes import read_held

    held = await read_held(rows.store, user_id, row_id)
    if held.role != "owner":
        raise Refused(f"tool row {row_id!r} is shared to you; only its owner refreshes it")
    if rows.tools.tool_of(held.row).actions_in_config:
        raise Refused(f"the actions of tool row {row_id!r} are its own configuration; edit it, or import it again")
    told = await rows.tools.metadata(held.row)
    before, after = _by_name(held.row.actions_metadata or []), _by_name(told)
    row = held.shown.row
    if keep and (held.row.actions_metadata is None or before != after):
        row = await rows.edit(row_id, user_id=user_id, version=held.row.version, actions_metadata=told, by=by)
    both = [name for name in after if name in before]
    changed = tuple(name for name in both if before[name] != after[name])
    return Refreshed(
        row=row,
        added=tuple(name for name in after if name not in before),
        removed=tuple(name for name in before if name not in after),
        changed=changed,
        same=len(both) - len(changed),
    )


def _by_name(metadata: list[dict[str, Any]]) -> Mapping[str, Any]:
    return {str(entry.get("name")): entry for entry in metadata}
