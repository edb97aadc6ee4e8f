"""Tools that keep things for a user, called as the engine calls them, on a database of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from anyio.abc import TaskGroup

from engine.contract import Scope, Tool, ToolContext, ToolResult
from engine.starting import CHAINS
from engine.toolstore import BoundStore
from events.keys import tenant_column
from events.opening import open_log
from events.store import Store
from projections.attempts import AttemptsProjection

__all__ = ("Run", "bound", "context_for", "failure", "opened", "runner", "start")

Run = Callable[..., Awaitable[Any]]


def context_for(store: Any, user: str = "ada", key: str = "m1:c1", conversation: str | None = None) -> ToolContext:
    """Return the context of one call."""
    return ToolContext(
        user_id=user,
        message_id="m1",
        call_id="c1",
        conversation_id=conversation,
        run_id=None,
        agent_id=None,
        attachments=(),
        idempotency_key=key,
        deadline=datetime.now(UTC),
        progress=lambda done, total, message: None,
        store=store,
    )


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    """Open the journal's database without an engine."""
    log = await open_log(url, AttemptsProjection(), CHAINS)
    try:
        yield log.store
    finally:
        await log.aclose()


def bound(store: Any, user: str = "ada", tool_id: str = "t1") -> BoundStore:
    """Return a user's and row's way to the database."""
    return BoundStore(store, tenant_column(user), tool_id)


def runner(
    kind: type[Tool], store: Any, user: str = "ada", tool_id: str = "t1", config: dict[str, Any] | None = None
) -> Run:
    """Return a function that runs an action as this user on this row."""
    tool = kind(config or {}, Scope(user_id=user, owner=user, tool_id=tool_id))
    way = bound(store, user, tool_id)

    async def run(action: str, /, key: str = "m1:c1", conversation: str | None = None, **kwargs: Any) -> Any:
        return await tool.execute_action(action, context_for(way, user, key, conversation), **kwargs)

    return run


def start(tasks: TaskGroup, run: Run, action: str, **kwargs: Any) -> None:
    """Run an action beside others."""

    async def running() -> None:
        await run(action, **kwargs)

    tasks.start_soon(running)


def failure(result: Any) -> str:
    """Return what a failed action says."""
    assert isinstance(result, ToolResult), result
    assert result.status == "error"
    return str(result.data)
