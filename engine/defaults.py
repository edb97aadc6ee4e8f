"""Default tools: rows that nobody stored (DESIGN 6, Tool rows)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Final
from uuid import UUID, uuid5

from engine.config_check import missing_keys
from engine.contract import Scope, Tool
from engine.discovery import ToolManager
from engine.rows import ToolRow
from engine.tool_policy import EVERYTHING, ToolPolicy
from events.errors import NotFound, Refused

__all__ = (
    "INTERNAL_ID",
    "NAMESPACE",
    "default_id",
    "default_rows",
    "internal_row",
    "require_usable",
    "selectable_row",
    "selectable_rows",
)

NAMESPACE: Final = UUID("90620d6d-8fc6-464c-a0b5-adf1626acd67")
"""Ids of default rows stand in journals and preferences, so this never changes."""

INTERNAL_ID: Final = "internal"
"""The id of every internal tool's row: such a tool has no configuration, hence nothing to tell rows apart by."""

_UUID5: Final = 5


def default_id(name: str) -> str:
    """Return the id of a default tool's row: the same on every machine, for ever."""
    return str(uuid5(NAMESPACE, name))


def default_rows(manager: ToolManager, policy: ToolPolicy = EVERYTHING) -> tuple[ToolRow, ...]:
    """Return a row for each tool of the catalogue that is on by default, in the catalogue's order.

    :param policy: puts tools on, and takes others away
    :raises Refused: if a tool is said to be a default but needs a stored row, or configuration
    """
    rows = [
        _row(name, tool)
        for name, tool in manager.load_tools().items()
        if tool.default_on or policy.standing.get(name) == "on"
    ]
    return tuple([row for row in rows if policy.applied(row) is not None])


def require_usable(policy: ToolPolicy, manager: ToolManager, rows: Iterable[ToolRow]) -> None:
    """Refuse a policy that speaks of tools that are not there, or says of them what would have no effect.

    :param rows: those given in code
    :raises Refused: if it does
    """
    for name in dict.fromkeys(policy.names()):
        try:
            manager.load_tool(name)
        except NotFound as error:
            raise Refused(f"the tool policy names {name!r}: {error}") from None
    synthesised = {row.name for row in rows if row.synthesised}
    unheard = [name for name in policy.standing if name not in synthesised]
    built_in = selectable_rows(manager) if unheard else {}
    for name in unheard:
        if policy.standing[name] != "on" and name not in built_in:
            raise Refused(
                f"the tool policy says {policy.standing[name]!r} of {name!r}, which has only rows that users "
                "configure; deny it, or make a rule"
            )


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
        if default_id(name) == tool_id:
            return _selectable(name, tool)
    return None


def selectable_rows(manager: ToolManager) -> dict[str, ToolRow]:
    """Return all such rows by name, those of default tools too, in the catalogue's order."""
    rows: dict[str, ToolRow] = {}
    for name, tool in manager.load_tools().items():
        # One that fails without configuration is none of them.
        with contextlib.suppress(Refused):
            row = _selectable(name, tool)
            if row is not None:
                rows[name] = row
    return rows


def _selectable(name: str, tool: type[Tool]) -> ToolRow | None:
    row = ToolRow(id=default_id(name), name=name, synthesised=True)
    return None if tool.needs_row or _required_keys(tool, row) else row


def internal_row(name: str) -> ToolRow:
    """Return the row of an internal tool, e.g. ``think``."""
    return ToolRow(id=INTERNAL_ID, name=name, synthesised=True)


def _row(name: str, tool: type[Tool]) -> ToolRow:
    row = ToolRow(id=default_id(name), name=name, synthesised=True)
    advice = "drop default_on" if tool.default_on else "the tool policy must not say that it is on"
    if tool.needs_row:
        raise Refused(f"tool {name!r} cannot be on by default: it needs a stored row (needs_row); {advice}")
    required = _required_keys(tool, row)
    if required:
        raise Refused(f"tool {name!r} cannot be on by default: it must be configured ({', '.join(required)}); {advice}")
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
