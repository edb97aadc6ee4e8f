"""Model-visible names of actions (DESIGN 6, prepare_tools_for_llm)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from engine.actions import Action
from engine.families import family_of

__all__ = ("NAME_LIMIT", "advertise")

NAME_LIMIT = 64

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]+")
_GOOGLE_START = re.compile(r"[a-zA-Z_]")
# Bases this long share one count, so that a suffix never has to be searched for among their cut forms.
_COUNTED = NAME_LIMIT - 4


def advertise(actions: Sequence[Action], family: str) -> tuple[str, ...]:
    """Return one name per action, all different, each fit for the family; the same for the same actions in any process.

    A name that one action alone has stays as it is. A name that several share is never used bare: each gets its
    tool's name before it. Illegal characters become ``_``, names are cut to 64 characters, and what is then empty or
    taken gets a numeric suffix, which never takes a name that belongs to another action. Actions of one row are named
    in the order of their own names, so that a server may list them in any order; rows are named in the order given.
    """
    google = family_of(family) == "google"
    counts = Counter(action.name for action in actions)
    bases = [_base(action, shared=counts[action.name] > 1, google=google) for action in actions]
    taken: set[str] = set()
    # A shared name stays out of use, bare: no reader could tell whose it is.
    barred = {name for name, count in counts.items() if count > 1}
    names = [""] * len(actions)
    clashing: list[int] = []
    for place in _turns(actions, counts, bases):
        base, complete = bases[place]
        if complete and base not in taken and base not in barred:
            names[place] = base
            taken.add(base)
        else:
            clashing.append(place)
    numbers: dict[str, int] = {}
    for place in clashing:
        names[place] = _numbered(bases[place][0], taken, barred, numbers)
    return tuple(names)


def _base(action: Action, *, shared: bool, google: bool) -> tuple[str, bool]:
    """Return the name an action would have if it were free, and whether nothing of it vanished."""
    name = _clean(action.name)
    tool = _clean(action.tool_name) if shared or not name else ""
    base = "_".join(filter(None, (tool, name))) or "tool"
    if google and not _GOOGLE_START.match(base):
        base = f"_{base}"
    return base[:NAME_LIMIT], bool(name) and (bool(tool) or not shared)


def _turns(actions: Sequence[Action], counts: Counter[str], bases: Sequence[tuple[str, bool]]) -> list[int]:
    """Return the order in which names are given: unique ones that stay as they are, other unique ones, shared ones."""
    rows: dict[str, int] = {}
    for action in actions:
        rows.setdefault(action.tool_id, len(rows))

    def turn(place: int) -> tuple[int, int, str]:
        action = actions[place]
        kind = 2 if counts[action.name] > 1 else int(bases[place][0] != action.name)
        return kind, rows[action.tool_id], action.name

    return sorted(range(len(actions)), key=turn)


def _clean(name: str) -> str:
    return _ILLEGAL.sub("_", name).strip("_") if _ILLEGAL.search(name) else name


def _numbered(base: str, taken: set[str], barred: set[str], numbers: dict[str, int]) -> str:
    counted = base[:_COUNTED]
    number = numbers.get(counted, 1)
    while (name := _suffixed(base, number)) in taken or name in barred:
        number += 1
    numbers[counted] = number + 1
    taken.add(name)
    return name


def _suffixed(base: str, number: int) -> str:
    suffix = f"_{number}"
    return base[: NAME_LIMIT - len(suffix)] + suffix
