"""What an owner says of a row's actions, against the actions that its tool has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from engine.actions import Action
from engine.bare_secrets import named_secrets
from engine.rows import ActionSettings
from engine.validation import Validators
from events.errors import Refused

__all__ = ("check_action_names", "check_actions")

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_LISTED: Final = 30


def check_action_names(tool: str, names: Iterable[str]) -> None:
    """Refuse configured actions whose names no model could call. :raises Refused: if there is one"""
    odd = [name for name in names if not _NAME.fullmatch(name)]
    if odd:
        listed = ", ".join(map(repr, odd[:_LISTED]))
        raise Refused(f"actions of {tool!r} may be called by letters, digits, - and _ only; rename {listed}")


def check_actions(tool: str, actions: Iterable[Action], said: Sequence[ActionSettings]) -> None:
    """Refuse settings of actions or properties that are not there, values not valid there, and secrets by their names.

    :param actions: as the tool has them, without any settings
    :raises Refused: if anything is wrong; the text says all of it
    """
    known = {action.name: action for action in actions}
    problems: list[str] = []
    for place, settings in enumerate(said):
        action = known.get(settings.name)
        if action is None:
            problems.append(f"there is no action {settings.name!r} (there are: {_listed(known)})")
        elif any(settings.name == other.name for other in said[:place]):
            problems.append(f"{settings.name!r} is said twice")
        else:
            problems += _of_action(action, settings)
    if problems:
        raise Refused(f"these actions of {tool!r} cannot be stored: {'; '.join(problems)}")


def _of_action(action: Action, said: ActionSettings) -> Iterator[str]:
    properties: dict[str, Any] = {**action.shown.get("properties", {}), **action.parameters.get("properties", {})}
    named = {"preset": said.presets, "pinned value": said.pinned, "hidden property": dict.fromkeys(said.hidden)}
    for kind, keys in named.items():
        for key in keys:
            if key not in properties:
                yield f"{action.name!r} takes no {key!r}, so it can be no {kind} (it takes: {_listed(properties)})"
    for key in said.presets:
        if key in said.pinned:
            yield f"{key!r} of {action.name!r} is either a preset or pinned, not both"
    yield from named_secrets(action, said)
    given = {key: value for key, value in {**said.presets, **said.pinned}.items() if key in properties}
    if given:
        problem = Validators().problem(
            replace(action, parameters=_of_values(action, properties), presets={}, pinned={}), given
        )
        if problem is not None:
            yield problem.rstrip(".")


def _of_values(action: Action, properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of some of an action's properties: what it says of each, and nothing of all."""
    kept = {key: content for key, content in action.parameters.items() if key in ("$schema", "$defs", "definitions")}
    return {**kept, "type": "object", "properties": properties}


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f", and {len(every) - _LISTED} more" if len(every) > _LISTED else ""
    return ", ".join(every[:_LISTED]) + more if every else "none"
