"""One item of a to-do list, and what a model may say of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from engine.action_entry import MOST
from engine.cleaning import STORABLE_TEXT
from engine.text_editing import EditError
from engine.todo_limits import AT_ONCE, LONGEST_TITLE, PRIORITIES

__all__ = ("TodoItem", "due_in", "parent_in", "priority_in", "title_in", "titles_in", "todo_number")


class TodoItem(msgspec.Struct, frozen=True):
    """An item as it stands.

    :ivar priority: its place in ``PRIORITIES``
    :ivar due_at: UTC
    :ivar parent: the number of the item it is a part of
    """

    number: int
    title: str
    done: bool = False
    priority: int = PRIORITIES.index("normal")
    due_at: datetime | None = None
    parent: int | None = None
    version: int = 1

    @property
    def status(self) -> str:
        """``open`` or ``completed``."""
        return "completed" if self.done else "open"

    @property
    def due(self) -> str:
        """When it is due, as ISO 8601; empty: never."""
        return "" if self.due_at is None else f"{self.due_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"

    @property
    def line(self) -> str:
        """What a listing says of it."""
        parts = [
            f"{PRIORITIES[self.priority]} priority" if PRIORITIES[self.priority] != "normal" else "",
            f"due {self.due}" if self.due else "",
            f"part of [{self.parent}]" if self.parent else "",
        ]
        more = ", ".join(filter(None, parts))
        return f"[{self.number}] {self.title} ({self.status})" + (f" - {more}" if more else "")


def todo_number(value: object, name: str = "todo_id") -> int:
    """Return an item's number: a positive whole number, or its digits. :raises EditError: if it is neither"""
    if isinstance(value, str) and re.fullmatch("[0-9]{1,10}", value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise EditError(f"{name} must be a positive integer.")
    if value > MOST:
        raise EditError(f"Todo with ID {value} not found.")
    return value


def title_in(value: object) -> str:
    """Return a title: one line, without spaces around it. :raises EditError: if it is blank, too long, or no text"""
    if not isinstance(value, str):
        raise EditError("Title is required.")
    title = " ".join(STORABLE_TEXT.clean(value).splitlines()).strip()
    if not title:
        raise EditError("Title is required.")
    if len(title) > LONGEST_TITLE:
        raise EditError(f"Title too long: it has {len(title)} characters, at most {LONGEST_TITLE} are kept.")
    return title


def titles_in(kwargs: dict[str, Any]) -> list[str]:
    """Return the titles that a call gives, one or several. :raises EditError: if it gives none, both, or too many"""
    several = kwargs.get("titles")
    if several is None:
        return [title_in(kwargs.get("title"))]
    if "title" in kwargs:
        raise EditError("Give title or titles, not both.")
    if not isinstance(several, Sequence) or isinstance(several, str) or not several:
        raise EditError("Title is required.")
    if len(several) > AT_ONCE:
        raise EditError(f"Too many titles: at most {AT_ONCE} are created at once.")
    return [title_in(title) for title in several]


def priority_in(value: object) -> int:
    """Return a priority's place. :raises EditError: if it is none"""
    if value not in PRIORITIES:
        raise EditError(f"priority must be one of {', '.join(PRIORITIES)}.")
    return PRIORITIES.index(str(value))


def due_in(value: object) -> datetime | None:
    """Return the moment, in UTC, that an ISO 8601 date or time says; a time without a zone is UTC. Empty: None.

    :raises EditError: if it says none
    """
    if value == "":
        return None
    try:
        moment = datetime.fromisoformat(str(value)) if isinstance(value, str) else None
        if moment is not None:
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise EditError("due_at must be an ISO 8601 date or time, e.g. 2030-01-31 or 2030-01-31T09:00:00+01:00.")


def parent_in(value: object) -> int | None:
    """Return the number of the item that another is to be a part of; 0: None. :raises EditError: if it is none"""
    return None if value in (0, "0") and not isinstance(value, bool) else todo_number(value, "parent")
