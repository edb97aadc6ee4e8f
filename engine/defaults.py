"""Default tools: rows that nobody stored (DESIGN 6, Tool rows)."""

from __future__ import annotations

from typing import Final
from uuid import UUID, uuid5

from engine.config_check import missing_keys
from engine.contract import Scope, Tool
from engine.discovery import ToolManager
from engine.rows import ToolRow
from events.errors import Refused

__all__ = ("INTERNAL_ID", "NAMESPACE", "default_id", "default_rows", "internal_row", "selectable_row")

NAMESPACE: Final = UUID("90620d6d-8fc6-464c-a0b5-adf1626acd67")
"""Ids of default rows stand in journals and preferences, so this never changes."""

INTERNAL_ID: Final = "internal"
"""The id of every internal tool's row: such a tool has no configuration, hence nothing to tell rows apart by."""

_UUID5: Final = 5


def default_id(name: str) -> str:
    """Return the id of a default tool's row: the same on every machine, for ever."""
    return str(uuid5(NAMESPACE, name))


def default_rows(manager: ToolManager) -> tuple[ToolRow, ...]:
    """Return a row for each tool of the catalogue that is on by default, in the catalogue's order.

    :raises Refused: if a tool claims to be a default but needs a stored row, or configuration
    """
    return tuple(_row(name, tool) for name, tool in manager.load_tools().items() if tool.default_on)


def selectable_row(manager: ToolManager, tool_id: str) -> ToolRow | None:
    """Return the row of a built-in tool that an agent may list though nobody stored it; None: there is no such id.

    Every tool of the catalogue has one that needs neither a stored row nor configuration.
    """
    try:
        if UUID(tool_id).version != _UUID5:
            return None
    except ValueError:
        return None
    for name, tool in manager.load_tools().items():
        if default_id(name) == tool_id and not tool.needs_row:
            row = ToolRow(id=tool_id, name=name, synthesised=True)
            return None if _required_keys(tool, row) else row
    return None


def internal_row(name: str) -> ToolRow:
    """Return the row of an internal tool, e.g. ``think``."""
    return ToolRow(id=INTERNAL_ID, name=name, synthesised=True)


def _row(name: str, tool: type[Tool]) -> ToolRow:
    row = ToolRow(id=default_id(name), name=name, synthesised=True)
    if tool.needs_row:
        raise Refused(f"tool {name!r} cannot be on by default: it needs a stored row (needs_row); drop default_on")
    required = _required_keys(tool, row)
    if required:
        raise Refused(
            f"tool {name!r} cannot be on by default: it must be configured ({', '.join(required)}); drop default_on"
        )
    return row


def _required_keys(tool: type[Tool], row: ToolRow) -> list[str]:
    try:
        requirements = tool({}, Scope(user_id=None, owner=None, tool_id=row.id)).get_config_requirements()
    except Exception as error:
        raise Refused(
            f"tool {row.name!r} cannot be on by default: it fails without configuration "
            f"({type(error).__name__}: {error}); drop default_on"
        ) from error
    return missing_keys(requirements, {})
