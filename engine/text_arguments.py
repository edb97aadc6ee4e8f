"""Arguments of a tool that edits texts, where nobody has checked them against its schema."""

from __future__ import annotations

from typing import Any, Final

from engine.cleaning import STORABLE_TEXT
from engine.text_editing import EditError

__all__ = ("LONGEST_QUERY", "flag_in", "line_in", "number_in", "query_in", "range_in", "text_in")

LONGEST_QUERY: Final = 500
"""Characters of what is looked for."""


def text_in(kwargs: dict[str, Any], name: str, default: str | None = "") -> str:
    """Return a text, or the default where there is none (None: there must be one).

    :raises EditError: if it is no text
    """
    value = kwargs.get(name, default)
    if not isinstance(value, str):
        raise EditError(f"{name} must be text.")
    return value


def query_in(kwargs: dict[str, Any]) -> str:
    """Return the text that is looked for. :raises EditError: if there is none, or it is too long"""
    query = STORABLE_TEXT.clean(text_in(kwargs, "query"))
    if not query.strip():
        raise EditError("query is required.")
    if len(query) > LONGEST_QUERY:
        raise EditError(f"query has {len(query)} characters; at most {LONGEST_QUERY} are looked for.")
    return query


def flag_in(kwargs: dict[str, Any], name: str) -> bool:
    """Return whether a flag is set. :raises EditError: if it is neither true nor false"""
    value = kwargs.get(name, False)
    if not isinstance(value, bool):
        raise EditError(f"{name} must be true or false.")
    return value


def number_in(kwargs: dict[str, Any], name: str, least: int = 1) -> int | None:
    """Return a whole number, or None where there is none. :raises EditError: if it is none, or too small"""
    value = kwargs.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise EditError(f"{name} must be a whole number, at least {least}.")
    return value


def line_in(kwargs: dict[str, Any], name: str) -> int:
    """Return a line's number. :raises EditError: if it is no whole number"""
    value = kwargs.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise EditError(f"{name} must be a whole number, counted from 1.")
    return value


def range_in(kwargs: dict[str, Any], name: str) -> tuple[int, int] | None:
    """Return a range of lines, or None where there is none. :raises EditError: if it is not two whole numbers"""
    value = kwargs.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2 or any(type(each) is not int for each in value):
        raise EditError(f"{name} must be two whole numbers: the first and the last line, -1 for the end.")
    return value[0], value[1]
