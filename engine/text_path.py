"""Paths under which texts are kept (files of a memory, pages of a wiki): one spelling of each, safe to compare."""

from __future__ import annotations

import unicodedata
from typing import Final

import msgspec

from engine.text_editing import EditError

__all__ = ("TextPath",)

_REFUSED: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
_TURNING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that make a path look like another."""


class TextPath(msgspec.Struct, frozen=True):
    """A path from the root; one that ends in a slash is a directory. Directories are what paths begin with.

    :ivar text: e.g. ``/notes/today.md`` or ``/notes/``
    """

    text: str

    @classmethod
    def of(cls, value: object, longest: int) -> TextPath:
        """Read a path: spaces around it, a missing first slash and ``.`` segments do not matter.

        :param longest: characters it may have
        :raises EditError: if it is no path; the text says why
        """
        if not isinstance(value, str):
            raise EditError("Invalid path: it must be text.")
        if any(unicodedata.category(each) in _REFUSED or each in _TURNING for each in value):
            raise EditError("Invalid path: it has control characters.")
        text = unicodedata.normalize("NFC", value).strip(" ")
        if not text:
            raise EditError("Invalid path: it is empty.")
        if "\\" in text:
            raise EditError("Invalid path: it has a backslash; segments are separated by '/'.")
        if "//" in text:
            raise EditError("Invalid path: it has an empty segment ('//').")
        segments = text.strip("/").split("/")
        if ".." in segments:
            raise EditError("Invalid path: it has a '..' segment.")
        if any(segment != segment.strip() for segment in segments):
            raise EditError("Invalid path: a segment begins or ends with a space.")
        kept = [segment for segment in segments if segment not in ("", ".")]
        is_directory = text.endswith("/") or segments[-1] == "." or not kept
        path = "/" + "/".join(kept) + ("/" if is_directory and kept else "")
        if len(path) > longest:
            raise EditError(f"Invalid path: it has {len(path)} characters, at most {longest} are taken.")
        return cls(path)

    def __str__(self) -> str:
        return self.text

    @property
    def is_root(self) -> bool:
        """Whether everything lies below it."""
        return self.text == "/"

    @property
    def is_directory(self) -> bool:
        """Whether it was written as a directory."""
        return self.text.endswith("/")

    @property
    def as_directory(self) -> TextPath:
        """The directory of that name."""
        return self if self.is_directory else TextPath(self.text + "/")

    @property
    def as_file(self) -> TextPath:
        """The file of that name; the root is none."""
        return TextPath(self.text.removesuffix("/") or "/")

    @property
    def above(self) -> list[str]:
        """The paths that must be no files if this one is to be there, the nearest last."""
        segments = self.as_file.text.split("/")[1:-1]
        return ["/" + "/".join(segments[: end + 1]) for end in range(len(segments))]
