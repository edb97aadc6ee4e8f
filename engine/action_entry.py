"""Entries of a tool's ``get_actions_metadata``: schemas that are strict, and say what an action does to the world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from events.types import Effect

__all__ = (
    "MOST",
    "action_definition",
    "lines_definition",
    "replacing_definitions",
    "text_definition",
    "whole_number_definition",
)

MOST: Final = 2**31 - 1
"""The largest number that a column of either database holds."""


def action_definition(
    name: str,
    description: str,
    properties: dict[str, Any] | None = None,
    *required: str,
    effect: Effect = "write",
    idempotent: bool = False,
) -> dict[str, Any]:
    """Return an action's entry.

    :param properties: all that may be sent
    :param required: the names of what must be sent
    """
    return {
        "name": name,
        "description": description,
        "effect": effect,
        "idempotent": idempotent,
        "parameters": {
            "type": "object",
            "properties": properties or {},
            "required": list(required),
            "additionalProperties": False,
        },
    }


def text_definition(description: str, longest: int | None = None, choices: Sequence[str] = ()) -> dict[str, Any]:
    """Return the schema of a text.

    :param longest: characters it may have
    :param choices: all that it may be; none: anything
    """
    bounds = {} if longest is None else {"maxLength": longest}
    return {"type": "string", "description": description, **bounds, **({"enum": list(choices)} if choices else {})}


def whole_number_definition(description: str, least: int, most: int | None = None) -> dict[str, Any]:
    """Return the schema of a whole number within bounds."""
    bounds = {} if most is None else {"maximum": most}
    return {"type": "integer", "description": description, "minimum": least, **bounds}


def replacing_definitions(noun: str) -> dict[str, Any]:
    """Return the schemas of what a literal replacement takes.

    :param noun: what is edited, e.g. ``note``
    """
    return {
        "old_str": text_definition(f"The piece as it stands in the {noun}."),
        "new_str": text_definition("What takes its place; empty deletes the piece."),
        "replace_all": {"type": "boolean", "description": "Replace every occurrence.", "default": False},
    }


def lines_definition() -> dict[str, Any]:
    """Return the schema of a range of lines."""
    return {
        "type": "array",
        "items": {"type": "integer", "minimum": -1, "maximum": MOST},
        "minItems": 2,
        "maxItems": 2,
        "description": "First and last line, counted from 1; -1 is the last. The lines come with their numbers.",
    }
