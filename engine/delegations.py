"""Calls that run with somebody else's credentials: a record of each, written before the tool runs (BEHAVIOUR 130)."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from functools import partial
from typing import Final

from engine.opened_rows import has_credentials
from engine.rows import ToolRow
from engine.runtime import Runtime
from events.keys import new_id, tenant_column
from events.persistence import run_to_end
from events.types import Proposed

__all__ = ("AUDIT", "is_delegated", "record_delegation")

AUDIT: Final = "calljournal.audit"
"""The logger that tells of each delegation, for who keeps such lines elsewhere."""

_log = logging.getLogger(AUDIT)


def is_delegated(row: ToolRow, user_id: str | None) -> bool:
    """Tell whether a row runs for this user with credentials of another one."""
    if row.user_id is None or row.user_id == user_id:
        return False
    # What was agreed with a server by OAuth is kept apart from the row, and is its owner's all the same.
    return has_credentials(row) or row.config.get("auth_type") == "oauth"


async def record_delegation(runtime: Runtime, proposed: Proposed, row: ToolRow) -> None:
    """Record that a call is about to run with its row's owner's credentials; on return that is durable.

    :raises LogUnavailable: if it cannot be written: then the call must not run
    """
    from sqlalchemy import insert

    from engine.schema import tool_credential_delegations

    statement = insert(tool_credential_delegations).values(
        id=new_id(),
        at=datetime.now(UTC),
        owner=tenant_column(row.user_id),
        invoker=tenant_column(proposed.user_id),
        tool_id=row.id,
        tool_name=row.name,
        action_name=proposed.action_name,
        agent_id=proposed.agent_id,
        key=proposed.key,
    )
    await run_to_end(partial(runtime.log.store.write, (statement,)))
    _log.info(
        "credentials of %r used for %r: tool %s (%s), action %s, agent %r, call %s",
        row.user_id,
        proposed.user_id,
        row.id,
        row.name,
        proposed.action_name,
        proposed.agent_id,
        proposed.key,
    )
