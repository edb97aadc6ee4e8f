"""The actions of ``todo_list``, as a model is told of them."""

from __future__ import annotations

from typing import Any

from engine.action_entry import MOST, action_definition, text_definition, whole_number_definition
from engine.todo_limits import AT_ONCE, LISTED, LONGEST_TITLE, PRIORITIES

__all__ = ("todo_actions",)


def todo_actions() -> list[dict[str, Any]]:
    """Return the actions: those that only read, then those that write."""
    return [*_reading(), *_creating(), *_changing()]


def _number(description: str, least: int = 1) -> dict[str, Any]:
    """Return the schema of an item's number; models send its digits as text, too."""
    digits = {"pattern": "^[0-9]+$", "maxLength": 10}
    return {"type": ["integer", "string"], "description": description, "minimum": least, "maximum": MOST, **digits}


def _look(name: str, description: str, properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return action_definition(name, description, properties, *required, effect="read", idempotent=True)


def _reading() -> list[dict[str, Any]]:
    status = text_definition("Which items; all if left out.", choices=("open", "completed", "all"))
    after = whole_number_definition("List only items after this number.", 0, MOST)
    limit = whole_number_definition(f"How many items to list; {LISTED} if left out.", 1, LISTED)
    which = {"todo_id": _number("The item's number.")}
    return [
        _look("todo_list", "List the to-do items.", {"status": status, "after": after, "limit": limit}),
        _look("todo_get", "Show one to-do item with its parts.", which, "todo_id"),
        _look("todo_history", "Show what a to-do item was before, a deleted one's too.", which, "todo_id"),
    ]


def _details() -> dict[str, Any]:
    return {
        "priority": text_definition("How much it matters; normal if never said.", choices=PRIORITIES),
        "due_at": text_definition(
            "When it is due: an ISO 8601 date or time, UTC where it has no zone. Empty: never.", 40
        ),
        "parent": _number("The number of the item this one is a part of; 0: of none.", 0),
    }


def _creating() -> list[dict[str, Any]]:
    title = text_definition("What is to be done, in one line.", LONGEST_TITLE)
    titles = {
        "type": "array",
        "items": title,
        "minItems": 1,
        "maxItems": AT_ONCE,
        "description": "Several items at once, instead of title.",
    }
    create = action_definition(
        "todo_create",
        "Create a to-do item, or several that share everything but their titles.",
        {"title": title, "titles": titles, **_details()},
    )
    return [create]


def _changing() -> list[dict[str, Any]]:
    which = {"todo_id": _number("The item's number.")}
    title = text_definition("What is to be done, in one line.", LONGEST_TITLE)
    recursive = {"type": "boolean", "description": "Delete its parts too.", "default": False}
    return [
        action_definition(
            "todo_update",
            "Change a to-do item; what is left out stays as it is.",
            {**which, "title": title, **_details()},
            "todo_id",
        ),
        action_definition("todo_complete", "Mark a to-do item as completed.", which, "todo_id", idempotent=True),
        action_definition("todo_reopen", "Mark a to-do item as open again.", which, "todo_id", idempotent=True),
        action_definition(
            "todo_delete", "Delete a to-do item.", {**which, "recursive": recursive}, "todo_id", effect="destroy"
        ),
    ]
