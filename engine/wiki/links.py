"""Links in a page: ``[[target]]`` and ``[[target|label]]``, outside code; pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Final

from engine.text_editing import EditError
from engine.wiki.limits import LINKS
from engine.wiki.paths import ROOT, wiki_path

__all__ = ("relinked", "targets")

_TOKEN: Final = re.compile(
    r"^ {0,3}(?P<fence>`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^ {0,3}(?P=fence)|\Z)"
    r"|`[^`\n]+`"
    r"|\[\[(?P<target>[^\[\]|\n]{1,600})(?P<label>\|[^\[\]\n]*)?\]\]",
    re.MULTILINE | re.DOTALL,
)


def targets(content: str) -> frozenset[str]:
    """Return the paths that a page links to, whether there is a page or not; what is no path is no link.

    :raises EditError: if they are too many
    """
    named = {match["target"] for match in _TOKEN.finditer(content)} - {None}
    found = frozenset(path for name in named if (path := _resolved(name)) is not None)
    if len(found) > LINKS:
        raise EditError(f"Page has links to {len(found)} pages; at most {LINKS} are kept. Spread them over pages.")
    return found


def relinked(content: str, moved: Callable[[str], str | None]) -> str:
    """Return a page with its links led to where pages went; labels and sections stay.

    :param moved: returns the new path of a page; None: it is where it was
    """

    @cache
    def followed(target: str) -> str | None:
        path = _resolved(target)
        new = None if path is None else moved(path)
        return None if new is None else _spelt(target, new)

    def one(match: re.Match[str]) -> str:
        new = followed(match["target"]) if match["target"] else None
        return match[0] if new is None else f"[[{new}{match['label'] or ''}]]"

    return _TOKEN.sub(one, content)


def _resolved(target: str) -> str | None:
    try:
        path = wiki_path(target.partition("#")[0])
    except EditError:
        return None
    return None if path == ROOT else path.path


def _spelt(old: str, path: str) -> str:
    """Spell a path as the old link was: with or without ``/`` at either end, and with its section."""
    name, hash_, section = old.partition("#")
    start = "" if name.lstrip().startswith("/") else "/"
    end = "/" if name.rstrip().endswith("/") else ""
    return f"{path.removeprefix(start)}{end}{hash_}{section}"
