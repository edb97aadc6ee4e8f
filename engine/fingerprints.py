"""The fingerprints of a row's actions, each taken when it is first asked for: many are offered, few called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.actions import Action, fingerprint
from engine.rows import ToolRow

__all__ = ("Fingerprints",)


class Fingerprints(Mapping[str, str]):
    """Maps the name of each action to its fingerprint."""

    def __init__(self, row: ToolRow, actions: tuple[Action, ...]) -> None:
        self._row = row
        self._actions = actions
        self._taken: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        if name not in self._taken:
            action = next((action for action in self._actions if action.name == name), None)
            if action is None:
                raise KeyError(name)
            self._taken[name] = fingerprint(action, self._row)
        return self._taken[name]

    def __iter__(self) -> Iterator[str]:
        return (action.name for action in self._actions)

    def __len__(self) -> int:
        return len(self._actions)
