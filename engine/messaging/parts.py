"""A long text parted into messages: each within a service's limit, none ending within what a reader sees as one."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Final

from engine.preview import boundary

__all__ = ("Entity", "parted", "units")

Entity = dict[str, Any]
"""A span of a text that is shown otherwise: JSON with ``offset`` and ``length`` in UTF-16 units."""

_FILLED: Final = 0.5
"""Of a message, what must be full before it is worth ending it at a paragraph, a line or a word."""

_BREAKS: Final = ("\n\n", "\n", " ")


def units(text: str) -> int:
    """Return the length of a text in UTF-16 units."""
    return len(text) + sum(character > "\uffff" for character in text)


def parted(text: str, most: int, entities: list[Entity] | None = None) -> list[tuple[str, list[Entity]]]:
    """Return a text in parts of at most ``most`` UTF-16 units, each with its share of the entities.

    A part ends after a paragraph, a line or a word where that leaves it half full, else between graphemes; one that is
    longer than a whole part is cut between characters. Parts without anything to see are left out; of the others
    nothing is. An entity that reaches over an end goes on in the next part.
    """
    offsets = [0, *accumulate(2 if character > "\uffff" else 1 for character in text)]
    parts = []
    for start, end in _ranges(text, offsets, most):
        if text[start:end].strip():
            parts.append((text[start:end], _within(entities or [], offsets[start], offsets[end])))
    return parts


def _ranges(text: str, offsets: list[int], most: int) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        last = bisect.bisect_right(offsets, offsets[start] + most) - 1
        end = len(text) if last >= len(text) else _end(text, start, last)
        yield start, end
        start = end


def _end(text: str, start: int, last: int) -> int:
    least = start + int((last - start) * _FILLED)
    for mark in _BREAKS:
        found = text.rfind(mark, least, last)
        if found > start:
            return found + len(mark)
    between = boundary(text, last)
    return between if between > start else max(last, start + 1)


def _within(entities: list[Entity], start: int, end: int) -> list[Entity]:
    kept = []
    for entity in entities:
        first, after = max(entity["offset"], start), min(entity["offset"] + entity["length"], end)
        if first < after:
            kept.append({**entity, "offset": first - start, "length": after - first})
    return kept
