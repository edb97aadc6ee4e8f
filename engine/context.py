"""Who a call is for, and in which turn."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.contract import Attachment
from events.keys import is_plain, require_storable

__all__ = ("CallContext", "require_storable_ids")


class CallContext(msgspec.Struct, frozen=True, kw_only=True):
    """The tenant, the turn, and what the turn may use (DESIGN 9).

    ``tool_ids``: exactly these rows, in this order; None: the user's rows, plus the defaults if there is no agent.
    ``tool_allowlist``: row ids (text, or integers) that a headless run may use although they need approval.
    ``client_tools``: function definitions that the caller runs itself.
    """

    user_id: str | None = None
    message_id: str | None = None
    conversation_id: str | None = None
    run_id: str | None = None
    agent_id: str | None = None
    headless: bool = False
    tool_ids: tuple[str, ...] | list[str] | None = None
    tool_allowlist: frozenset[str | int] | set[str | int] = frozenset()
    client_tools: tuple[dict[str, Any], ...] | list[dict[str, Any]] = ()
    attachments: tuple[Attachment, ...] = ()

    @property
    def vouched(self) -> bool:
        """Whether an agent's list answers for its rows, whoever's they are."""
        return self.agent_id is not None and self.tool_ids is not None


def require_storable_ids(context: CallContext) -> None:
    """Refuse a context whose ids could not be stored. :raises Refused: if one holds NUL or half of a surrogate pair"""
    ids = (context.user_id, context.message_id, context.run_id, context.conversation_id, context.agent_id)
    # Nearly always all of them are short and plain: one look at them together tells.
    if is_plain("".join(filter(None, ids))):
        return
    names = ("the user id", "the message id", "the run id", "the conversation id", "the agent id")
    for what, identity in zip(names, ids, strict=True):
        require_storable(identity, what)
