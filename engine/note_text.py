"""A note's text and what can be done to it: pure edits, each with an error the model can act on."""

from __future__ import annotations

from engine.cleaning import STORABLE_TEXT

__all__ = ("LARGEST", "NoteError", "inserted", "overwritten", "replaced")

LARGEST = 64 * 1024
"""Bytes of UTF-8 that one note may have."""

_QUOTED = 80


class NoteError(ValueError):
    """An edit that cannot be made; the text tells the model why."""


def overwritten(text: str) -> str:
    """Return the note that consists of this text, as it is.

    :raises NoteError: if it is blank or too long
    """
    if not text.strip():
        raise NoteError("Note content required.")
    return _fitting(text)


def replaced(content: str, old: str, new: str, everywhere: bool) -> str:
    """Return the note with ``old``, taken literally, replaced by ``new``.

    :raises NoteError: if it does not occur, or several times and not ``everywhere``, or the note becomes too long
    """
    if not old:
        raise NoteError("old_str is required.")
    count = content.count(old)
    if count == 0:
        raise NoteError(f"String '{_quoted(old)}' not found in note.")
    if count > 1 and not everywhere:
        raise NoteError(
            f"String '{_quoted(old)}' occurs {count} times in note. Give more of the text around the one you mean, "
            "or set replace_all."
        )
    return _fitting(content.replace(old, new))


def inserted(content: str, line_number: int, text: str) -> str:
    """Return the note with the text as lines of its own before line ``line_number`` (from 1; one past the end appends).

    :raises NoteError: if there is no text, no such line, or the note becomes too long
    """
    if not text:
        raise NoteError("Text is required.")
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not 1 <= line_number <= len(lines) + 1:
        raise NoteError(f"Invalid line number. Note has {len(lines)} lines.")
    at = line_number - 1
    ending = "\n" if content.endswith("\n") else ""
    return _fitting("\n".join([*lines[:at], text.removesuffix("\n"), *lines[at:]]) + ending)


def _fitting(content: str) -> str:
    content = STORABLE_TEXT.clean(content)
    size = len(content.encode())
    if size > LARGEST:
        raise NoteError(f"Note too long: it would have {size} bytes, at most {LARGEST} are kept. Shorten it.")
    return content


def _quoted(text: str) -> str:
    return text if len(text) <= _QUOTED else text[:_QUOTED] + "..."
