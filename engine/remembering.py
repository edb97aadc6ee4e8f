"""Always allow this: an approval that makes a rule, for the same action in the same conversation, for some time.

The decision is appended first, the rule added after it: killed in between, the call is approved and the next one asks
again. The rule's id is the approval's, so that each leads to the other.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from sqlalchemy import Connection

from engine.definition import is_client_call
from engine.gate import is_forced
from engine.rule import Rule, exactly
from engine.rule_store import insert_rule
from engine.runtime import Runtime
from engine.standing import Standing
from events.errors import JournalError, LogUnavailable, Refused
from events.keys import tenant_column
from events.types import Approved

__all__ = ("remember_approval", "require_rememberable")

_LONGEST: Final = timedelta(days=3660)


def require_rememberable(standing: Standing, duration: timedelta) -> None:
    """Refuse to remember what a rule could not allow.

    :raises Refused: if the time is none, or the call waits for a reason that no rule answers
    """
    if not timedelta(0) < duration <= _LONGEST:
        raise Refused("remember must be more than no time and at most ten years, e.g. timedelta(hours=1)")
    if is_forced(standing.row.rule):
        raise Refused(
            f"call {standing.row.key!r} cannot be allowed always: its tool wants a person each time "
            f"({standing.row.rule}); decide without remember"
        )


async def remember_approval(runtime: Runtime, standing: Standing, approval: Approved, duration: timedelta) -> Rule:
    """Add the rule that an approval makes, and return it. Saying it again changes nothing.

    :raises LogUnavailable: if it was not written, or that is not known; the call is approved all the same
    """
    now, tenant = runtime.rulebook.now(), tenant_column(standing.row.user_id)
    proposed = standing.proposed
    # The place of a client's tool among the client's is another each turn: its definition alone tells it.
    client = is_client_call(runtime, proposed)
    until = now + duration
    rule = Rule(
        verdict="allow",
        tool=exactly(proposed.tool_name) if client else None,
        tool_id=None if client else proposed.tool_id,
        action=exactly(proposed.action_name),
        conversation_id=proposed.conversation_id,
        headless=False,
        fingerprint=approval.fingerprint,
        message=f"allowed in this conversation until {until:%Y-%m-%d %H:%M} UTC",
        expires_at=until,
        ordinal=0,
        id=approval.id,
        decision=standing.row.key,
    )

    def add(connection: Connection) -> Rule:
        return insert_rule(connection, tenant, rule, now, approval.by)

    try:
        return await runtime.log.store.transact(add)
    except JournalError as error:
        raise LogUnavailable(
            f"call {standing.row.key!r} is approved, but that could not be remembered, so the next one asks: {error}"
        ) from error
