"""Model-visible names of actions (DESIGN 6, prepare_tools_for_llm)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
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
        _Naming(actions, counts, taken, google=google).give(waiting, names)
    return tuple(names)


class _Naming:
    """Names the actions whose own name cannot stay: those that no other action has first, then the shared ones."""

    def __init__(self, actions: Sequence[Action], counts: Mapping[str, int], taken: set[str], *, google: bool) -> None:
        self._actions = actions
        self._counts = counts
        self._taken = taken
        self._google = google
        # A shared name stays out of use, bare: no reader could tell whose it is.
        self._barred = {name for name, count in counts.items() if count > 1}
        self._starts: dict[str, int] = {}
        self._clean = _Cleaned()

    def give(self, waiting: Sequence[int], names: list[str]) -> None:
        """Write the names of the actions at these places, which are those of one row after another."""
        alike: dict[tuple[str, str], list[int]] = defaultdict(list)
        for place in waiting:
            action = self._actions[place]
            alike[action.tool_name, action.name].append(place)
        claims: dict[str, list[int]] = {}
        turns: dict[str, tuple[bool, int, str]] = {}
        for (tool, name), places in alike.items():
            base, turn = self._base(tool, name), self._turn(places[0])
            if base in claims:
                claims[base] = sorted([*claims[base], *places], key=self._turn)
                turns[base] = min(turn, turns[base])
            else:
                # Actions of one tool and one name are of different rows, so they stand in their turns already.
                claims[base], turns[base] = places, turn
        in_turn = sorted(claims, key=turns.__getitem__)
        for base in in_turn:
            if base not in self._taken and base not in self._barred:
                first = next(filter(self._is_whole, claims[base]), None)
                if first is not None:
                    names[first] = base
                    self._taken.add(base)
        numbers: dict[str, int] = {}
        for base in in_turn:
            if nameless := [place for place in claims[base] if not names[place]]:
                self._number(base, nameless, names, numbers)

    def _number(self, base: str, places: Sequence[int], names: list[str], numbers: dict[str, int]) -> None:
        taken, barred, number = self._taken, self._barred, numbers.get(base[:_COUNTED], 1)
        for place in places:
            while (name := _numbered(base, number)) in taken or name in barred:
                number += 1
            number += 1
            names[place] = name
            taken.add(name)
        numbers[base[:_COUNTED]] = number

    def _base(self, tool_name: str, name: str) -> str:
        """Return the name that an action would have if it were free."""
        shared = self._counts[name] > 1
        own = self._clean[name]
        tool = self._clean[tool_name] if shared or not own else ""
        base = f"{tool}_{own}" if tool and own else own or tool or "tool"
        if self._google and not _GOOGLE_LEGAL.match(base):
            base = f"_{base}"
        return base[:NAME_LIMIT]

    def _is_whole(self, place: int) -> bool:
        """Tell whether nothing of an action's name, or of its tool's where that stands before it, vanishes."""
        action = self._actions[place]
        return bool(self._clean[action.name]) and bool(self._counts[action.name] == 1 or self._clean[action.tool_name])

    def _turn(self, place: int) -> tuple[bool, int, str]:
        """Return what decides when an action is named: unique ones first, row after row, in the order of names."""
        action = self._actions[place]
        start = self._starts.get(action.tool_id)
        if start is None:
            start = place
            while start and self._actions[start - 1].tool_id == action.tool_id:
                start -= 1
            self._starts[action.tool_id] = start
        return self._counts[action.name] > 1, start, action.name


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
