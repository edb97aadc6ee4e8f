"""How much a wiki keeps, and how much of it one call shows or changes."""

from __future__ import annotations

from typing import Final

__all__ = (
    "COMPARED",
    "FOUND",
    "HIGHEST",
    "LARGEST",
    "LINKS",
    "LISTED",
    "LONGEST_PATH",
    "LONGEST_PIECE",
    "LONGEST_TITLE",
    "LONGEST_WIKI",
    "MENDED",
    "MOVED",
)

LARGEST: Final = 1_000_000
"""Bytes of UTF-8 that one page may have."""

LONGEST_PATH: Final = 512
"""Bytes of UTF-8 of a path."""

LONGEST_TITLE: Final = 200
"""Characters of a title."""

LONGEST_WIKI: Final = 200
"""Bytes of UTF-8 of a wiki's name."""

LINKS: Final = 1000
"""Different pages that one page may link to."""

MOVED: Final = 1000
"""Pages that one call deletes, moves, or mends the links of: the journal waits meanwhile."""

MENDED: Final = 5_000_000
"""Characters of the pages that one call mends the links of."""

LISTED: Final = 500
"""Lines of one listing."""

FOUND: Final = 100
"""Pages that one search shows."""

LONGEST_PIECE: Final = 500
"""Characters that may be searched for."""

COMPARED: Final = 1_000_000
"""Pairs of lines that a comparison looks at, at the worst."""

HIGHEST: Final = 2**31 - 1
"""The highest number of a version or a line."""
