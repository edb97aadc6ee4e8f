"""Calls with lives of every kind, appended one event at a time: what verify, rebuild and read models are tested on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import anyio

from events import (
    Approved,
    Confirmed,
    Denied,
    EventLog,
    Executed,
    Failed,
    LateOutcome,
    Paused,
    Proposed,
    Resumed,
    ToolEvent,
    TransitionRejected,
)
from events.transitions import Attempt, advance
from tests.events.appends import follow, proposed

__all__ = ("live", "live_all", "lives", "state_after")


def lives(first: Proposed) -> list[list[ToolEvent]]:
    """Return what may become of a call, from the beginning to an end of each kind."""
    ask = follow(
        Paused,
        first,
        pause_type="awaiting_approval",
        reason="ask",
        rule="r1",
        expires_at=datetime(2030, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
    )
    moved = follow(Paused, first, pause_type="awaiting_approval", reason="changed", new_fingerprint="g")
    approve = follow(Approved, first, by="ada", digest=first.digest, fingerprint="f", arguments={"n": 2, "f": 1.0})
    resume = follow(Resumed, first, worker="w2")
    result = follow(Executed, first, result={"text": "é\0", "n": 10**20}, artifact_id="a1", rule="r2")
    error = follow(Executed, first, status="error", result=None)
    failure = follow(Failed, first, kind="exception", message="boom\nbang")
    return [
        [],
        [result],
        [result, follow(Confirmed, first)],
        [error],
        [failure],
        [ask],
        [ask, approve],
        [ask, approve, resume, result],
        [ask, approve, moved],
        [ask, follow(Denied, first, reason="rejected", message="no", by="ada", rule="r3")],
        [follow(Denied, first, reason="headless", message="nobody watches")],
        [follow(Paused, first, pause_type="requires_client_execution", reason="client"), result],
        [failure, follow(LateOutcome, first, outcome=result)],
        [follow(LateOutcome, first, outcome=failure), follow(Executed, first, result="after all", late=True)],
        [follow(Executed, first, result="x" * 401_000)],
    ]


async def live(log: EventLog, first: Proposed, later: Sequence[ToolEvent]) -> None:
    """Append a life, event by event."""
    for version, event in enumerate([first, *later]):
        await log.append(first.key, [event], version, first.user_id)


async def live_all(log: EventLog, message_id: str = "m", tenants: Sequence[str | None] = ("u", None, "")) -> int:
    """Append a call of every life for every tenant, all at once, and return how many calls these are."""
    count = 0
    async with anyio.create_task_group() as tasks:
        for tenant in tenants:
            for number in range(len(lives(proposed("x")))):
                fields = {
                    "tool_id": "t1",
                    "conversation_id": "conv",
                    "agent_id": "agent",
                    "traceparent": "00-1-2-01",
                    "idempotent": number % 2 == 0,
                    "headless": number % 3 == 0,
                    "arguments": {"n": number, "text": "漢", "when": str(timedelta(seconds=number))},
                }
                first = proposed(f"c{number}", message_id=message_id, user_id=tenant, **fields)
                tasks.start_soon(live, log, first, lives(first)[number])
                count += 1
    return count


def state_after(attempt: Attempt | None, events: Sequence[ToolEvent]) -> Attempt | None:
    """Return the state after these events; None: the lifecycle forbids one of them."""
    try:
        for event in events:
            attempt = advance(attempt, event)
    except TransitionRejected:
        return None
    return attempt
