"""What a model is told when a call cannot be run: short, and with a way on (BEHAVIOUR 82, 86, 88, 89)."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = (
    "LISTED",
    "STOPPED_AFTER",
    "arguments_text",
    "kind_of_json",
    "nearest",
    "not_an_object",
    "quoted",
    "refusal_text",
)

LISTED = 30
"""Callable names listed at most."""

STOPPED_AFTER = 2
"""Calls of a name that leads nowhere, after which the next is told to stop."""

_LIMIT = 1000
_NAME_LIMIT = 100
_NONE = "(none)"
_COMPARED = 500
_NEAR = 0.75


def refusal_text(name: str, callable_names: Iterable[str], limit: int = LISTED, times: int = 1) -> str:
    """Say that there is no such tool, and which names can be called; under 1000 characters, on one line.

    From the third time on that a conversation calls the name, it is told to stop that.

    A name that is nearly the refused one is named first, though never called. Names are listed in sorted order, at
    most ``limit`` and as many as fit; the rest is counted. The refused name is never among them; with no other, the
    list says ``(none)``.
    """
    known = sorted({other for other in callable_names if other != name})
    head = f"There is no tool named {quoted(name)}." if name else "The call names no tool."
    near = nearest(name, known)
    hint = f" The nearest name is {quoted(near)}." if near else ""
    stop = f" It was called {times} times in vain: stop calling it." if times > STOPPED_AFTER else ""
    return _listing(f"{head} It was not run.{stop}{hint} Callable tools: ", known, limit)


def nearest(name: str, names: Sequence[str]) -> str | None:
    """Return the name that differs from this one in case, in a prefix up to a dot, in separators or by a few letters.

    Only for a hint: near is not the same, so a near name is never called instead.
    """
    plain = _plain(name[:_NAME_LIMIT])
    if not plain:
        return None
    for other in names:
        if _plain(other) == plain:
            return other
    # Comparing takes time, and with more names than this no list helps a model anyway.
    found = difflib.get_close_matches(name[:_NAME_LIMIT], names[:_COMPARED], n=1, cutoff=_NEAR)
    return found[0] if found else None


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.rpartition(".")[2])).casefold()


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
