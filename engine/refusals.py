"""What a model is told when a call cannot be run: short, and with a way on (BEHAVIOUR 82, 86, 88, 89)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ("LISTED", "arguments_text", "kind_of_json", "not_an_object", "quoted", "refusal_text")

LISTED = 30
"""Callable names listed at most."""

_LIMIT = 1000
_NAME_LIMIT = 100
_NONE = "(none)"


def refusal_text(name: str, callable_names: Iterable[str], limit: int = LISTED) -> str:
    """Say that there is no such tool, and which names can be called; under 1000 characters, on one line.

    Names are listed in sorted order, at most ``limit`` and as many as fit; the rest is counted. The refused name is
    never among them; with no other, the list says ``(none)``.
    """
    known = sorted({other for other in callable_names if other != name})
    head = f"There is no tool named {quoted(name)}." if name else "The call names no tool."
    return _listing(f"{head} It was not run. Callable tools: ", known, limit)


def arguments_text(name: str, problem: str, callable_names: Iterable[str], limit: int = LISTED) -> str:
    """Say that the call's arguments are at fault, not its name, and which names can be called; under 1000 characters.

    ``problem`` is cut to leave room for the names.
    """
    advice = f"The tool {quoted(name)} exists and was not run: send its arguments anew."
    return _listing(f"{_cut(problem, 500)} {advice} Callable tools: ", sorted(set(callable_names)), limit)


def not_an_object(name: str, sent: Any) -> str:
    """Say that a call's arguments are some other kind of value than an object."""
    return f"The arguments of {quoted(name)} are {kind_of_json(sent)}; they must be one JSON object."


def kind_of_json(value: Any) -> str:
    """Name the kind of a JSON value, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list() | tuple():
            return "an array"
        case dict():
            return "an object"
    return f"a {type(value).__name__}"


def quoted(name: str) -> str:
    """Return a name that a model made up in a form that is safe within one line, cut to 100 characters."""
    shown = name[: _NAME_LIMIT + 1]
    shown = shown if shown.isprintable() else ascii(shown)[1:-1]
    return f'"{_cut(shown, _NAME_LIMIT)}"'


def _listing(head: str, names: list[str], limit: int) -> str:
    if not names:
        return head + _NONE
    room = _LIMIT - len(head) - len(f" and {len(names)} more") - 1
    shown: list[str] = []
    for name in names[:limit]:
        room -= len(name) + 2
        if room < 0:
            break
        shown.append(name)
    more = len(names) - len(shown)
    return head + ", ".join(shown) + (f" and {more} more" if more else "")


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + "..."
