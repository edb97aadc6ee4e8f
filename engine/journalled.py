"""The form in which arguments are journalled: what every database stores and reads back alike (BEHAVIOUR 113-115)."""

from __future__ import annotations

from typing import Any

from engine.cleaning import STORABLE_TEXT
from engine.jsonform import NoJsonForm, is_clean, is_flat, json_form

__all__ = ("MAX_DEPTH", "TOO_DEEP", "journal_form")

MAX_DEPTH = 200
"""Levels of nesting that arguments may have."""

TOO_DEEP = "(nested too deep)"
"""What is journalled instead of arguments deeper than that, or hold themselves; no object, so it is never run."""


def journal_form(value: Any) -> Any:
    """Return arguments as they are journalled, shown, approved and run; never raises, never changes ``value``.

    NUL is dropped from strings and keys, other control characters stay; half of a surrogate pair becomes U+FFFD; UUID
    becomes text, datetime ISO text, Decimal its digits as text, bytes base64; NaN and the infinities become null; all
    else as ``engine.jsonform`` has it. What needs no change is returned as it is: the same object.
    """
    # As most arguments are: nothing in them is nested, or has another form.
    if is_flat(value) and is_clean(value, STORABLE_TEXT):
        return value
    try:
        form = json_form(value, STORABLE_TEXT)
    except NoJsonForm:
        return TOO_DEEP
    return TOO_DEEP if _is_too_deep(form) else form


def _is_too_deep(value: Any) -> bool:
    """Tell whether JSON content (which never holds itself) is nested deeper than ``MAX_DEPTH`` levels."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for outer in level
            if type(outer) is dict or type(outer) is list
            for item in (outer.values() if type(outer) is dict else outer)
            if type(item) is dict or type(item) is list
        ]
        if not level:
            return False
    return True
