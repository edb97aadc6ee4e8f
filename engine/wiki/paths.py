"""Paths of pages: what is a path, and what is below one."""

from __future__ import annotations

from typing import Any, Final
from unicodedata import category, normalize

import msgspec

from engine.text_editing import EditError
from engine.wiki.limits import LONGEST_PATH

__all__ = ("ROOT", "WikiPath", "page_path", "wiki_path")

_UNLINKABLE: Final = frozenset("[]|#\\")
_UNSEEN: Final = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_JOINERS: Final = frozenset("\u200c\u200d")
"""They change how a word reads in Persian or Hindi, so names have them."""


class WikiPath(msgspec.Struct, frozen=True):
    """A path in its one spelling.

    :ivar path: begins with ``/`` and does not end with it, but for the root
    :ivar is_directory: it was written with ``/`` at its end: a directory, and never a page
    """

    path: str
    is_directory: bool = False

    @property
    def below(self) -> str:
        """What the paths of all pages in this directory begin with."""
        return self.path if self.path == "/" else self.path + "/"

    @property
    def ancestors(self) -> tuple[str, ...]:
        """The directories that it lies in, but for the root."""
        parts = self.path.split("/")[1:-1]
        return tuple("/" + "/".join(parts[: place + 1]) for place in range(len(parts)))


ROOT: Final = WikiPath("/", is_directory=True)


def wiki_path(text: Any) -> WikiPath:
    """Return the path that a text names; one without ``/`` at the front begins at the root.

    :raises EditError: if it names none
    """
    if not isinstance(text, str) or not text.strip():
        raise EditError("Invalid path: it must be a text like /guide/setup.")
    path = normalize("NFC", text.strip())
    unfit = next((each for each in path if _is_unfit(each)), None)
    if unfit is not None:
        raise EditError(f"Invalid path: it may not have the character {unfit!a}.")
    if len(path.encode()) > LONGEST_PATH:
        raise EditError(f"Invalid path: it is longer than {LONGEST_PATH} bytes.")
    parts = path.removeprefix("/").split("/")
    if any(not part for part in parts[:-1]) or path.startswith("//"):
        raise EditError("Invalid path: it has '//'.")
    if any(part == ".." or part != part.strip() for part in parts):
        raise EditError("Invalid path: a part of it is '..', or begins or ends with a blank.")
    kept = "/".join(part for part in parts if part not in ("", "."))
    return WikiPath("/" + kept, parts[-1] in ("", ".")) if kept else ROOT


def page_path(text: Any) -> WikiPath:
    """Return the path of a page. :raises EditError: if the text names none, or a directory"""
    path = wiki_path(text)
    if path.is_directory:
        raise EditError(f"Invalid path: {path.below} is a directory; give the path of a page.")
    return path


def _is_unfit(character: str) -> bool:
    return character in _UNLINKABLE or (category(character) in _UNSEEN and character not in _JOINERS)
