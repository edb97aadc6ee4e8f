"""Model-visible names of actions (DESIGN 6, prepare_tools_for_llm)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from engine.actions import Action
from engine.families import family_of

__all__ = ("NAME_LIMIT", "advertise")

NAME_LIMIT = 64

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]+")
_LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_GOOGLE_LEGAL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
# Bases this long share one count, so that a suffix never has to be searched for among their cut forms.
_COUNTED = NAME_LIMIT - 4


def advertise(
    actions: Sequence[Action], family: str, settled: Mapping[str, tuple[str, str] | None] | None = None
) -> tuple[str, ...]:
    """Return one name per action, all different, each fit for the family; the same for the same actions in any process.

    A name that one action alone has stays as it is. A name that several share is never used bare: each gets its
    tool's name before it. Illegal characters become ``_``, names are cut to 64 characters, and what is then empty or
    taken gets a numeric suffix, which never takes a name that belongs to another action. Actions of one row are named
    in the order of their own names, so that a server may list them in any order; rows are named in the order given.

    :param settled: names given earlier, each with its (tool id, action): that action keeps the name. One with None,
        or with an action that is not here, is nobody's: it is given to no action
    """
    google = family_of(family) == "google"
    legal = (_GOOGLE_LEGAL if google else _LEGAL).fullmatch
    counts = Counter([action.name for action in actions])
    kept = {target: name for name, target in settled.items() if target and legal(name)} if settled else {}
    taken = set(settled) if settled else set()
    names = [""] * len(actions)
    waiting: list[int] = []
    for place, action in enumerate(actions):
        name = action.name
        if kept and (action.tool_id, name) in kept:
            names[place] = kept[action.tool_id, name]
        elif counts[name] > 1 or name in taken or not legal(name):
            waiting.append(place)
        else:
            names[place] = name
            taken.add(name)
    if waiting:
        _name_others(actions, waiting, names, counts, taken, google)
    return tuple(names)


def _name_others(
    actions: Sequence[Action],
    waiting: Sequence[int],
    names: list[str],
    counts: Mapping[str, int],
    taken: set[str],
    google: bool,
) -> None:
    """Name the actions whose own name cannot stay: those that no other action has first, then the shared ones."""
    clean = _Cleaned()
    # A shared name stays out of use, bare: no reader could tell whose it is.
    barred = {name for name, count in counts.items() if count > 1}
    clashing: list[tuple[int, str]] = []
    for shared, _, name, place in _turns(actions, waiting, counts):
        own, tool = clean[name], clean[actions[place].tool_name]
        base = f"{tool}_{own}" if shared and tool and own else own or tool or "tool"
        if google and not _GOOGLE_LEGAL.match(base):
            base = f"_{base}"
        base = base[:NAME_LIMIT]
        if base in taken or base in barred or not own or (shared and not tool):
            clashing.append((place, base))
        else:
            names[place] = base
            taken.add(base)
    numbers: dict[str, int] = {}
    for place, base in clashing:
        counted = base[:_COUNTED]
        number = numbers.get(counted, 1)
        while (name := _numbered(base, number)) in taken or name in barred:
            number += 1
        numbers[counted] = number + 1
        names[place] = name
        taken.add(name)


def _turns(
    actions: Sequence[Action], waiting: Sequence[int], counts: Mapping[str, int]
) -> list[tuple[bool, int, str, int]]:
    """Return (whether others share its action's name, its row, that name, its place), in the order of naming."""
    rows: dict[str, int] = {}
    turns: list[tuple[bool, int, str, int]] = []
    for place in waiting:
        action = actions[place]
        turns.append((counts[action.name] > 1, rows.setdefault(action.tool_id, len(rows)), action.name, place))
    turns.sort()
    return turns


class _Cleaned(dict[str, str]):
    """Names with each run of illegal characters made one ``_`` and their ends trimmed, each worked out once."""

    def __missing__(self, name: str) -> str:
        clean = self[name] = _ILLEGAL.sub("_", name).strip("_") if _ILLEGAL.search(name) else name
        return clean


def _numbered(base: str, number: int) -> str:
    name = f"{base}_{number}"
    if len(name) > NAME_LIMIT:
        suffix = f"_{number}"
        name = base[: NAME_LIMIT - len(suffix)] + suffix
    return name
