"""Which tools the command line lets turns have."""

from __future__ import annotations

import os
from typing import Final, cast

from engine.tool_policy import ToolPolicy, ToolStanding
from events.errors import Refused

__all__ = ("ALLOW_TOOLS", "DENY_TOOLS", "TOOL_STANDINGS", "tool_policy")

TOOL_STANDINGS: Final = "CALLJOURNAL_TOOL_STANDINGS"
"""The environment's variable: built-in tools that are on, off or ask, as ``memory=ask cryptoprice=on``."""

ALLOW_TOOLS: Final = "CALLJOURNAL_ALLOW_TOOLS"
"""The only tools, between commas or blanks; where there is none, all."""

DENY_TOOLS: Final = "CALLJOURNAL_DENY_TOOLS"
"""The tools that are never used, between commas or blanks."""


def tool_policy() -> ToolPolicy:
    """Return the policy that the environment says; without it, every tool is as it is.

    :raises Refused: if it is not said so
    """
    standings: dict[str, ToolStanding] = {}
    for entry in _words(TOOL_STANDINGS):
        name, equals, standing = entry.partition("=")
        if not (name and equals):
            raise Refused(f"${TOOL_STANDINGS}: {entry!r} is not a tool's name with =on, =off or =ask")
        if standings.get(name, standing) != standing:
            raise Refused(f"${TOOL_STANDINGS}: {name!r} is {standings[name]} and {standing}; say one of them")
        standings[name] = cast("ToolStanding", standing)
    allow, deny = _words(ALLOW_TOOLS) or None, _words(DENY_TOOLS)
    try:
        return ToolPolicy(standing=standings, allow=allow, deny=deny)
    except Refused as error:
        raise Refused(f"${TOOL_STANDINGS}: {error}") from None


def _words(variable: str) -> tuple[str, ...]:
    said = os.environ.get(variable, "")
    words = tuple(said.replace(",", " ").split())
    if said.strip() and not words:
        raise Refused(f"${variable}: {said!r} has commas and no tool's name; leave it blank, or name one")
    return words
