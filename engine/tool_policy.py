"""Which tools a deployment, and within that a user, lets turns have, and which of them ask first (docs/tools.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

import msgspec
from msgspec.structs import replace

from engine.actions import Action
from engine.rows import ToolRow
from events.errors import Refused

__all__ = (
    "EVERYTHING",
    "NO_STANDINGS",
    "Standings",
    "ToolPolicy",
    "ToolStanding",
    "asking_first",
    "standing_of",
    "stricter",
)

ToolStanding: TypeAlias = Literal["on", "off", "ask"]
"""What is said of a built-in tool: it may be used, it may not, or a person approves each of its calls."""

Standings: TypeAlias = Mapping[str, ToolStanding]
"""What is said of built-in tools, by their names; nothing is said of the others."""

NO_STANDINGS: Final[Standings] = MappingProxyType({})

_KNOWN: Final = get_args(ToolStanding)
_BY_STRICTNESS: Final = ("on", "ask", "off")


class ToolPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What a deployment says of tools by their names, whose rows they may be.

    :ivar standing: of built-in tools, as rows that nobody stored have them. ``on``: a default tool; ``off``: in no
        turn; ``ask``: a person approves each call, as where an action's settings require that
    :ivar allow: the only tools that turns may have, stored rows' tools included; None: all
    :ivar deny: tools that no turn ever has, stored rows' tools included
    :raises Refused: if a standing is none
    """

    standing: Standings = {}
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for listed in (self.allow, self.deny):
            if isinstance(listed, str):
                raise Refused(f"ToolPolicy takes lists of tools' names, not the text {listed!r}")
        for name, standing in self.standing.items():
            if standing not in _KNOWN:
                raise Refused(f"ToolPolicy.standing[{name!r}] cannot be {standing!r}; give one of {', '.join(_KNOWN)}")

    def names(self) -> Iterator[str]:
        """Yield every name of a tool that it has."""
        yield from self.standing
        yield from self.allow or ()
        yield from self.deny

    def permits(self, name: str) -> bool:
        """Tell whether any row of a tool may be in turns."""
        return name not in self.deny and (self.allow is None or name in self.allow)

    def applied(self, row: ToolRow, standings: Standings = NO_STANDINGS) -> ToolRow | None:
        """Return a row as a user's turns may have it; None: they may not.

        :param standings: what the user says of built-in tools; of the two, the stricter holds
        """
        if not self.permits(row.name):
            return None
        if not row.synthesised:
            return row
        match stricter(self.standing.get(row.name, "on"), standings.get(row.name, "on")):
            case "on":
                return row
            case "ask":
                return replace(row, asks=True)
            case "off":
                return None


EVERYTHING: Final = ToolPolicy()
"""Every tool is as it is."""


def stricter(one: ToolStanding, other: ToolStanding) -> ToolStanding:
    """Return what holds where two say something of a tool."""
    return max(one, other, key=_BY_STRICTNESS.index)


def standing_of(text: str) -> ToolStanding:
    """Return a standing as it is kept; one that this release does not know lets nothing run."""
    return "ask" if text == "ask" else "off"


def asking_first(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Return actions as they are where a person approves each call of them, whatever their tool makes of that."""
    return tuple(
        [
            replace(action, require_approval=True, live_gate=None if action.live_gate is None else "adds")
            for action in actions
        ]
    )
