"""How much the tool ``memory`` keeps, and how little a row's owner may make of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import msgspec

__all__ = (
    "FILES",
    "FOUND",
    "LARGEST",
    "LISTED",
    "LONGEST_PATH",
    "PAST",
    "RESTORABLE",
    "SPACE",
    "VERSIONS",
    "MemoryLimits",
)

FILES: Final = 20_000
"""Files of one user and row."""

LARGEST: Final = 256 * 1024
"""Bytes of UTF-8 of one file."""

SPACE: Final = 64 * 1024 * 1024
"""Bytes of all files together."""

PAST: Final = 4 * SPACE
"""Bytes of all versions that are kept; beyond it the oldest go."""

VERSIONS: Final = 20
"""Versions of a file that are kept."""

RESTORABLE: Final = timedelta(days=30)
"""How long a deleted file can be brought back."""

LONGEST_PATH: Final = 400
"""Characters of a path."""

LISTED: Final = 200
"""Files that one listing shows."""

FOUND: Final = 50
"""Files that one search shows."""


class MemoryLimits(msgspec.Struct, frozen=True):
    """What one row keeps: the tool's limits, or what its owner lowered them to."""

    files: int = FILES
    largest: int = LARGEST
    space: int = SPACE

    @classmethod
    def of(cls, config: dict[str, Any]) -> MemoryLimits:
        """Read a row's configuration; what is no limit lowers nothing."""
        return cls(
            _lowered(config.get("max_files"), FILES),
            _lowered(config.get("max_file_bytes"), LARGEST),
            _lowered(config.get("max_bytes"), SPACE),
        )

    @staticmethod
    def requirements() -> dict[str, Any]:
        """Return the entries of a row's configuration."""
        return {
            "max_files": _entry("How many files may be kept for one user.", FILES),
            "max_file_bytes": _entry("How many bytes one file may have.", LARGEST),
            "max_bytes": _entry("How many bytes all files of one user may have.", SPACE),
        }


def _entry(description: str, most: int) -> dict[str, Any]:
    bounds = {"minimum": 1, "maximum": most, "default": most}
    return {"type": "integer", "description": description, "required": False, **bounds}


def _lowered(stated: Any, most: int) -> int:
    if not isinstance(stated, int) or isinstance(stated, bool) or stated < 1:
        return most
    return min(stated, most)
