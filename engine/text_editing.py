"""Edits of a text that a model keeps (a note, a file, a page): pure, literal, each with an error it can act on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

import msgspec

from engine.cleaning import STORABLE_TEXT

__all__ = ("LAST", "EditError", "TextKind", "lines_of")

LAST: Final = -1
"""The end of a range of lines that goes to the last line."""

_QUOTED: Final = 80
_LISTED: Final = 5
_COUNTED: Final = 100
"""Places that are looked for: a long piece that overlaps itself has very many, each as dear as the text is long."""


class EditError(ValueError):
    """An edit that cannot be made; the text tells the model why."""


class TextKind(msgspec.Struct, frozen=True):
    """What is edited.

    :ivar noun: what errors call it, e.g. ``note``
    :ivar largest: bytes of UTF-8 that one may have
    :ivar quoted: errors quote its lines; if not, for others wrote them, they tell their numbers alone
    """

    noun: str
    largest: int
    quoted: bool = True

    def fitting(self, content: str) -> str:
        """Return the text as a database can store it. :raises EditError: if it is too long"""
        content = STORABLE_TEXT.clean(content)
        self._require_room(len(content.encode()))
        return content

    def replaced(self, content: str, old: str, new: str, everywhere: bool = False) -> str:
        """Return the text with ``old`` replaced by ``new``, both taken literally.

        :raises EditError: if ``old`` does not occur, or in several places (overlapping ones count) and not
            ``everywhere``, or the text becomes too long
        """
        if not old:
            raise EditError("old_str is required.")
        places = _places(content, old)
        first = next(places, None)
        if first is None:
            raise EditError(f"String '{_quoted(old)}' not found in {self.noun}.{_near(content, old, self.quoted)}")
        if not everywhere and (second := next(places, None)) is not None:
            raise EditError(self._ambiguous(content, old, [first, second, *islice(places, _COUNTED - 1)]))
        # Counted first: small pieces, each replaced by a long text, would fill the memory.
        self._require_room(_size(content) + content.count(old) * (_size(new) - _size(old)))
        return self.fitting(content.replace(old, new))

    def inserted(self, content: str, line_number: int, text: str) -> str:
        """Return it with the text as lines of its own before line ``line_number`` (from 1; one past the end appends).

        :raises EditError: if there is no text, no such line, or the text becomes too long
        """
        if not text:
            raise EditError("Text is required.")
        lines = lines_of(content)
        if not 1 <= line_number <= len(lines) + 1:
            raise EditError(f"Invalid line number. {self.noun.capitalize()} has {len(lines)} lines.")
        at = line_number - 1
        ending = "\n" if content.endswith("\n") else ""
        return self.fitting("\n".join([*lines[:at], text.removesuffix("\n"), *lines[at:]]) + ending)

    def appended(self, content: str, text: str) -> str:
        """Return it with the text as lines of its own at the end. :raises EditError: as :meth:`inserted` does"""
        return self.inserted(content, len(lines_of(content)) + 1, text)

    def numbered(self, content: str, first: int, last: int) -> str:
        """Return lines ``first`` to ``last`` (from 1, both included; :data:`LAST`: to the end), each with its number.

        A range may end beyond the last line.

        :raises EditError: if no such line is there
        """
        lines = lines_of(content)
        end = len(lines) if last == LAST else min(last, len(lines))
        if not 1 <= first <= end:
            raise EditError(f"Line range out of bounds. {self.noun.capitalize()} has {len(lines)} lines.")
        return "\n".join(f"{number}: {lines[number - 1]}" for number in range(first, end + 1))

    def _require_room(self, size: int) -> None:
        if size > self.largest:
            raise EditError(
                f"{self.noun.capitalize()} too long: it would have {size} bytes, at most {self.largest} are kept. "
                "Shorten it."
            )

    def _ambiguous(self, content: str, old: str, places: list[int]) -> str:
        shown = "; ".join(_line_at(content, place, self.quoted) for place in places[:_LISTED])
        more = f"; and {len(places) - _LISTED} more" if len(places) > _LISTED else ""
        times = f"{len(places)} times"
        if len(places) > _COUNTED:
            more, times = "; and more", f"more than {_COUNTED} times"
        return (
            f"String '{_quoted(old)}' occurs {times} in {self.noun} ({shown}{more}). Give more of the text "
            "around the one you mean, or set replace_all."
        )


def lines_of(content: str) -> list[str]:
    """Return a text's lines; a line feed at the end ends the last one, it begins none."""
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))


def _places(content: str, piece: str) -> Iterator[int]:
    at = content.find(piece)
    while at >= 0:
        yield at
        at = content.find(piece, at + 1)


def _near(content: str, old: str, quoted: bool) -> str:
    """Say where the text differs from what was looked for in nothing but case or white space, if anywhere."""
    wanted = " ".join(old.casefold().split())
    if not wanted:
        return ""
    for number, line in enumerate(lines_of(content), 1):
        if wanted in " ".join(line.casefold().split()):
            says = f": '{_quoted(line)}'" if quoted else "."
            return f" Line {number} differs only in case or white space{says}"
    return ""


def _line_at(content: str, place: int, quoted: bool) -> str:
    number = content.count("\n", 0, place) + 1
    if not quoted:
        return f"line {number}"
    start = content.rfind("\n", 0, place) + 1
    end = content.find("\n", place)
    line = content[start : end if end >= 0 else len(content)]
    if len(line) > _QUOTED:
        line = content[max(start, place - _QUOTED // 2) : place + _QUOTED // 2].partition("\n")[0]
    return f"line {number}: '{line}'"


def _quoted(text: str) -> str:
    return text if len(text) <= _QUOTED else text[:_QUOTED] + "..."
