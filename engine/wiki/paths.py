"""Paths of pages: what is a path, and what is below one."""

from __future__ import annotations

from typing import Final
from unicodedata import category

import msgspec

from engine.text_editing import EditError
from engine.text_path import TextPath
from engine.wiki.limits import LONGEST_PATH

__all__ = ("ROOT", "WikiPath", "page_path", "wiki_path")

_UNLINKABLE: Final = frozenset("[]|#")
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


def wiki_path(text: object) -> WikiPath:
    """Return the path that a text names, spelt as ``TextPath`` does; one that no link could name is none.

    :raises EditError: if it names none
    """
    path = TextPath.of(text, LONGEST_PATH)
    unfit = next((each for each in path.text if each in _UNLINKABLE or _is_unseen(each)), None)
    if unfit is not None:
        raise EditError(f"Invalid path: it may not have the character {unfit!a}.")
    if len(path.text.encode()) > LONGEST_PATH:
        raise EditError(f"Invalid path: it is longer than {LONGEST_PATH} bytes.")
    return WikiPath(path.as_file.text, path.is_directory)


def page_path(text: object) -> WikiPath:
    """Return the path of a page. :raises EditError: if the text names none, or a directory"""
    path = wiki_path(text)
    if path.is_directory:
        raise EditError(f"Invalid path: {path.below} is a directory; give the path of a page.")
    return path


def _is_unseen(character: str) -> bool:
    return not character.isprintable() and category(character) == "Cf" and character not in _JOINERS
