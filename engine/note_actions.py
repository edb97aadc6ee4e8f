"""The actions of ``notes``, as a model is told of them."""

from __future__ import annotations

from typing import Any, Final

from engine.action_entry import (
    MOST,
    action_definition,
    lines_definition,
    replacing_definitions,
    text_definition,
    whole_number_definition,
)
from engine.note_limits import FOUND, LONGEST_TITLE
from engine.text_arguments import LONGEST_QUERY

__all__ = ("note_actions",)

_TITLE: Final = text_definition(
    "Which note; without one, the note called 'note'. A title is taken as it is, in this case.", LONGEST_TITLE
)
_EXPECTED: Final = whole_number_definition(
    "The version of the note you have seen; if it has been changed since, nothing is done.", 0, MOST
)


def note_actions() -> list[dict[str, Any]]:
    """Return the actions: those that only read, then those that write."""
    return [*_reading(), *_writing()]


def _reading() -> list[dict[str, Any]]:
    found = whole_number_definition(f"How many notes to list; {FOUND} if left out.", 1, FOUND)
    query = {**text_definition("What to look for, literally.", LONGEST_QUERY), "minLength": 1}
    after = text_definition("List only titles after this one.", LONGEST_TITLE)
    return [
        _look("note_view", "Read a note.", {"title": _TITLE, "view_range": lines_definition()}),
        _look("note_list", "List the notes there are: title, version, length.", {"after": after}),
        _look(
            "note_search",
            "Find notes whose title or text has a piece of text, in any case.",
            {"query": query, "limit": found},
            "query",
        ),
        _look("note_history", "List the versions of a note that are kept, a deleted note's too.", {"title": _TITLE}),
    ]


def _look(name: str, description: str, properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return action_definition(name, description, properties, *required, effect="read", idempotent=True)


def _writing() -> list[dict[str, Any]]:
    which = {"title": _TITLE, "expected_version": _EXPECTED}
    text = text_definition("The text.")
    line = "The line before which the text is put, counted from 1; one past the last appends."
    version = whole_number_definition("The version to go back to, see note_history.", 1, MOST)
    return [
        action_definition("note_overwrite", "Replace a whole note, or begin one.", {"text": text, **which}, "text"),
        action_definition(
            "note_append", "Add lines at the end of a note, or begin one.", {"text": text, **which}, "text"
        ),
        action_definition(
            "note_str_replace",
            "Replace a piece of a note's text. The piece is taken literally and must occur exactly once, unless "
            "replace_all is set.",
            {**replacing_definitions("note"), **which},
            "old_str",
            "new_str",
        ),
        action_definition(
            "note_insert",
            "Insert lines into a note.",
            {"line_number": whole_number_definition(line, 1, MOST), "text": text, **which},
            "line_number",
            "text",
        ),
        action_definition(
            "note_undo",
            "Take the last change of a note back, its deletion too; done twice, it brings the change back. Or go back "
            "to a version.",
            {"version": version, **which},
        ),
        action_definition("note_delete", "Delete a note; note_undo brings it back.", which, effect="destroy"),
    ]
