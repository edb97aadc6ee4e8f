"""What a conversation has called before: names keep meaning what they meant (DESIGN 6, prepare_tools_for_llm)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from engine.actions import Action

__all__ = ("NOTHING", "ActionKey", "Remembered", "settled_names", "still_there")

ActionKey = tuple[str, str]
"""The id of a row, and the name of an action of its."""

_CLIENT = re.compile(r"ct\d+")


class Remembered(msgspec.Struct, frozen=True):
    """The names that a conversation used, those used first first.

    :ivar targets: what a name led to when it was first called
    :ivar refused: how often a name that leads nowhere was called
    """

    targets: Mapping[str, ActionKey] = MappingProxyType({})
    refused: Mapping[str, int] = MappingProxyType({})


NOTHING = Remembered()


def still_there(remembered: Remembered, actions: Iterable[Action]) -> dict[str, ActionKey | None]:
    """Return where each name of the conversation leads now: to the same action as before, or None if that is gone.

    A tool of the client's own has a new place each turn, so it is known by its action's name.
    """
    now = {(action.tool_id, action.name): (action.tool_id, action.name) for action in actions}
    by_client = {action.name: (action.tool_id, action.name) for action in actions if action.client_side}
    return {
        name: by_client.get(action) if _CLIENT.fullmatch(tool_id) else now.get((tool_id, action))
        for name, (tool_id, action) in remembered.targets.items()
    }


def settled_names(
    leading: Mapping[str, ActionKey | None], plain: Mapping[str, ActionKey]
) -> dict[str, ActionKey | None]:
    """Return the names to keep, and those to keep free, in a preparation for this conversation; often none.

    An action that would be advertised under a new name keeps the last one it was called by. A name that led to
    another action than it would now is given to nobody else.

    :param leading: from :func:`still_there`
    :param plain: the names without regard to the conversation
    """
    fresh = {target: name for name, target in plain.items()}
    settled: dict[str, ActionKey | None] = {}
    for name, target in leading.items():
        if target is None or target not in fresh:
            if name in plain:
                settled[name] = None
        elif plain.get(name) != target:
            # Its own name has been used as well: that one stays, and this one only goes on leading to it.
            keeps = leading.get(fresh[target]) != target and not _is_spelt_out(name, target)
            if keeps:
                settled = {other: None if kept == target else kept for other, kept in settled.items()}
            if keeps or name in plain:
                settled[name] = target if keeps else None
    return settled


def _is_spelt_out(name: str, target: ActionKey) -> bool:
    return name == f"{target[1]}_{target[0]}"
