"""How much the tool ``notes`` keeps."""

from __future__ import annotations

from typing import Final

__all__ = ("FOUND", "LARGEST", "LISTED", "LONGEST_TITLE", "NOTES", "VERSIONS")

LARGEST: Final = 64 * 1024
"""Bytes of UTF-8 that one note may have."""

NOTES: Final = 20_000
"""Notes that one row may have for one user."""

LONGEST_TITLE: Final = 200
"""Characters of a title."""

VERSIONS: Final = 100
"""Versions of a note that its history keeps."""

LISTED: Final = 100
"""Notes that one listing shows."""

FOUND: Final = 50
"""Notes that one search shows."""
