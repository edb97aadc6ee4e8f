"""What an instance of a tool whose actions are its row's is given for one call (BEHAVIOUR 80, 136)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from engine.actions import Action
from engine.arguments import Resolved
from engine.opened_rows import LEGACY
from engine.rows import ToolRow

__all__ = ("request_row", "request_settings")


def request_row(row: ToolRow, action: Action, resolved: Resolved) -> ToolRow:
    """Return a row as its tool is loaded with for this call: of a configured action, with its request settings alone.

    Any other tool's row is returned as it is.
    """
    return replace(row, config=request_settings(row, action, resolved)) if action.configured else row


def request_settings(row: ToolRow, action: Action, resolved: Resolved) -> dict[str, Any]:
    """Return a configured action's own settings with the call's values; of the row's other actions there is nothing.

    ``query_params`` and ``headers`` hold values; ``body`` holds the schema of what the action is given as arguments,
    ``query_schema`` the schemas of what a call may set of the query.
    The row's ``security`` stands where the action has none of its own, and its sealed credentials stay. Where these may
    go (``trusted_origins``) is the row's to say.
    """
    settings = {**action.request, "query_params": resolved.query_params, "headers": resolved.headers}
    settings |= {key: row.config[key] for key in ("security", LEGACY) if key in row.config and key not in settings}
    settings |= {key: row.config[key] for key in ("trusted_origins",) if key in row.config}
    if action.idempotent:
        settings["idempotent"] = True
    bodies = [group for group in action.groups if group.name == "body"]
    schemas = action.parameters["properties"]
    properties = {name: schemas.get(name) for group in bodies for name in _names(group)}
    if properties:
        settings["body"] = {"properties": properties, "$defs": action.parameters.get("$defs")}
    queries = [group for group in action.groups if group.name == "query_params"]
    settings["query_schema"] = {name: schemas.get(name) for group in queries for name in group.visible}
    return settings


def _names(group: Any) -> list[str]:
    return [*group.visible, *group.pinned]
