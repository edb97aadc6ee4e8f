"""Text of a wiki in its fence."""

from __future__ import annotations

from engine.text_fence import marked

__all__ = ("fenced",)


def fenced(text: str, title: str = "") -> str:
    """Return what others wrote, told apart from what the tool says; a title stands on the opening mark's line."""
    heading = f" title: {title}" if title else ""
    return marked(text, "was written by users of the wiki", marks="the two marks", heading=heading)
