"""A page as it was read."""

from __future__ import annotations

import msgspec

from engine.readable import WebLink
from events.errors import Refused

__all__ = ("LARGEST_TEXT", "Unreadable", "WebDocument", "clipped")

LARGEST_TEXT = 2_000_000
"""Characters of text that are kept of one page."""


class Unreadable(Refused):
    """What cannot be read as a page; the text says why."""


class WebDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A page's text, and what it says of itself ("" where it says nothing).

    :ivar form: what it was and what read it, in words of ours, e.g. ``article (trafilatura)``
    :ivar cut: the text is only the beginning, for there is more than :data:`LARGEST_TEXT`
    """

    form: str
    text: str
    title: str = ""
    author: str = ""
    date: str = ""
    links: tuple[WebLink, ...] = ()
    cut: bool = False


def clipped(parts: list[str], between: str = "\n\n") -> tuple[str, bool]:
    """Return the parts as one text, and whether it had to be cut."""
    text = between.join(parts)
    return text[:LARGEST_TEXT], len(text) > LARGEST_TEXT
