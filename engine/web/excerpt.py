"""The part of a page's text that is asked for: from an offset on, or around what is looked for."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from engine.web.document import Unreadable

__all__ = ("PLACES", "Excerpt", "excerpt", "places")

PLACES: Final = 20
"""Places that are shown at once of those where a text is found."""

_AROUND: Final = 240


class Excerpt(msgspec.Struct, frozen=True):
    """A part of a text.

    :ivar said: which part it is, for the model
    :ivar next_offset: where the next part begins; None: this is the last
    """

    text: str
    said: str
    next_offset: int | None


def excerpt(text: str, offset: int, limit: int) -> Excerpt:
    """Return characters of a text. :raises Unreadable: if the text ends before the offset"""
    total = len(text)
    if offset and offset >= total:
        raise Unreadable(f"The page has {total} characters; offset {offset} is past its end.")
    end = min(offset + limit, total)
    more = f"; next offset: {end}" if end < total else ""
    return Excerpt(text[offset:end], f"Characters {offset} to {end} of {total}{more}.", end if more else None)


def places(text: str, wanted: str, offset: int) -> Excerpt:
    """Return where a text is found, with what stands around it; letter case and kinds of blanks make no difference.

    Places that are close together are shown as one.
    """
    words = [re.escape(word) for word in wanted.split()]
    spans: list[tuple[int, int]] = []
    count, further = 0, None
    for match in re.compile(r"\s+".join(words), re.IGNORECASE).finditer(text, offset):
        near = bool(spans) and match.start() - _AROUND <= spans[-1][1]
        if further is None and not near and len(spans) == PLACES:
            further = match.start()
        count += 1
        if further is not None:
            continue
        start, end = max(0, match.start() - _AROUND), min(len(text), match.end() + _AROUND)
        spans = [*spans[:-1], (spans[-1][0], end)] if near else [*spans, (start, end)]
    shown = "\n\n".join(f"[offset {start}]\n{text[start:end].strip()}" for start, end in spans)
    more = f"; the next ones: find with offset {further}" if further is not None else ""
    return Excerpt(shown, f"Found {count} time{'s' * (count != 1)} in {len(text)} characters{more}.", further)
