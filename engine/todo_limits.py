"""How much the tool ``todo_list`` keeps."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

__all__ = ("AT_ONCE", "LISTED", "LONGEST_TITLE", "PRIORITIES", "REMEMBERED", "TODOS", "VERSIONS")

TODOS: Final = 20_000
"""Items of one user and row."""

AT_ONCE: Final = 100
"""Items that one call may create."""

LONGEST_TITLE: Final = 500
"""Characters of a title."""

LISTED: Final = 200
"""Items that one listing shows."""

VERSIONS: Final = 50
"""Versions of an item that its history keeps."""

REMEMBERED: Final = timedelta(days=30)
"""How long the history of a deleted item is kept."""

PRIORITIES: Final = ("low", "normal", "high", "urgent")
"""The least first."""
