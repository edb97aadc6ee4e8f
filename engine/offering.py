"""The actions a turn offers to its model: which, and in which order (BEHAVIOUR 3, 4, 25, 27, 28)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from engine.actions import Action

__all__ = ("offered",)


def offered(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Return the active actions, those of stored rows first, otherwise in the order given.

    A synthesised action that a stored row of the same tool has too is collapsed into the stored one, which then needs
    approval if either does. Two stored rows are never collapsed, nor are client tools.
    """
    active = [action for action in actions if action.active]
    kept = [action for action in active if not action.synthesised]
    if len(kept) == len(active):
        return tuple(kept)
    places: dict[tuple[str, str], list[int]] = {}
    for place, action in enumerate(kept):
        places.setdefault((action.tool_name, action.name), []).append(place)
    for action in active:
        if not action.synthesised:
            continue
        key = (action.tool_name, action.name)
        if action.client_side:
            kept.append(action)
        elif key in places:
            for place in places[key]:
                kept[place] = _gated_by(kept[place], action)
        else:
            places[key] = [len(kept)]
            kept.append(action)
    return tuple(kept)


def _gated_by(kept: Action, collapsed: Action) -> Action:
    if kept.require_approval or not collapsed.require_approval:
        return kept
    return msgspec.structs.replace(kept, require_approval=True)
