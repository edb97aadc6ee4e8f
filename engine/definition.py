"""What a call's action is at this moment: looked up by its row's id, and read anew."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from engine.actions import Action
from engine.concealing import Concealing
from engine.refusals import quoted
from engine.runtime import Runtime
from engine.secret_book import SecretBook
from engine.toolset import Member
from events.types import Proposed

__all__ = ("Definition", "Missing", "definition_of", "is_client_call")

_CLIENT = re.compile(r"ct\d+")


class Definition(msgspec.Struct, frozen=True):
    """An action as it is defined now, with the row that it is of."""

    action: Action
    member: Member

    @property
    def fingerprint(self) -> str:
        """What an approval must have been given for."""
        return self.member.fingerprints[self.action.name]

    def hidden(self, secrets: SecretBook, proposed: Proposed) -> Concealing | None:
        """Return how the secrets of a journalled call of it are kept; None: it has none."""
        return secrets.within(self.member.row, self.action, proposed)


class Missing(msgspec.Struct, frozen=True):
    """Why an action cannot be run now: it is gone, or its tool cannot be asked what it has."""

    kind: Literal["unknown_tool", "load"]
    why: str


async def definition_of(runtime: Runtime, proposed: Proposed) -> Definition | Missing:
    """Return the action of a proposed call as it is defined now, or why there is none.

    By the row's id, and never by a name: a tool that took another's name is not reached.
    """
    toolsets, row = runtime.toolsets, None
    if proposed.tool_id is not None:
        row = await toolsets.row(proposed.tool_id, proposed.user_id, vouched=proposed.vouched)
    if row is None:
        return _gone(f"its tool {quoted(proposed.tool_name)} is not there any more")
    member = await toolsets.fresh(row)
    if member is None or member.tool is None:
        return Missing("load", f"its tool {quoted(proposed.tool_name)} cannot be reached, or is broken")
    if member.row.name != proposed.tool_name:
        return _gone(f"its tool is {quoted(member.row.name)} now, and was {quoted(proposed.tool_name)}")
    action = member.action(proposed.action_name)
    if action is None:
        return _gone(f"its tool {quoted(proposed.tool_name)} has no action {quoted(proposed.action_name)} any more")
    return Definition(action, member)


def _gone(why: str) -> Missing:
    return Missing("unknown_tool", why)


def is_client_call(runtime: Runtime, proposed: Proposed) -> bool:
    """Tell whether a call is executed by its client: its id is of a turn's own tools, and of no stored row."""
    tool_id = proposed.tool_id
    return tool_id is not None and _CLIENT.fullmatch(tool_id) is not None and not runtime.toolsets.is_given(tool_id)
