"""Who a call is for, and in which turn."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.contract import Attachment

__all__ = ("CallContext",)


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
