"""Names of imported actions: distinct, legal everywhere, the same in whatever order a document lists them.

And what an action is taken to do, by its method.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable

import msgspec

__all__ = ("Call", "action_names", "what_it_does")

_READING = ("GET", "HEAD")
_REPEATABLE = ("GET", "HEAD", "PUT", "DELETE")
_LIMIT = 64
_DIGITS = 7


class Call(msgspec.Struct, frozen=True):
    """One operation of a document.

    :ivar operation_id: as the document names it; "" where it does not
    """

    method: str
    path: str
    operation_id: str = ""

    def __str__(self) -> str:
        return f"{self.method.upper()} {self.path}"


def what_it_does(method: str) -> dict[str, bool | str]:
    """Return an action's approval, effect and idempotence: what does more than read waits for a person's word."""
    method = method.upper()
    effect = "read" if method in _READING else "destroy" if method == "DELETE" else "write"
    return {
        "require_approval": method not in _READING,
        "effect": effect,
        "idempotent": method in _REPEATABLE,
    }


def action_names(calls: Iterable[Call]) -> list[str]:
    """Return a name for each operation: its id, else its method and path, in ``[A-Za-z0-9_-]``, at most 64 characters.

    What is longer, and what several operations would share, ends in seven digits of the SHA-256 of the whole: so a
    name depends on no other operation than those it would be taken for.
    """
    listed = list(calls)
    wanted = [_wanted(call) for call in listed]
    counts = Counter(_cut(name, name) for name in wanted)
    names = [
        _cut(name, name) if counts[_cut(name, name)] == 1 else _cut(name, f"{call}\0{call.operation_id}", always=True)
        for call, name in zip(listed, wanted, strict=True)
    ]
    # Digits may meet a name that ends so by itself, though nobody will see it.
    taken: set[str] = set()
    for place, name in enumerate(names):
        number, distinct = 1, name
        while distinct in taken:
            number += 1
            distinct = f"{name[: _LIMIT - 8]}_{number}"
        names[place] = distinct
        taken.add(distinct)
    return names


def _wanted(call: Call) -> str:
    return _clean(call.operation_id) or _clean(f"{call.method.lower()}_{call.path.strip('/')}") or "call"


def _clean(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")


def _cut(name: str, identity: str, *, always: bool = False) -> str:
    if len(name) <= _LIMIT and not always:
        return name
    digest = hashlib.sha256(identity.encode()).hexdigest()[:_DIGITS]
    return f"{name[: _LIMIT - _DIGITS - 1]}_{digest}"
