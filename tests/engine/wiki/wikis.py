"""A wiki that stands alone on a database, and a user's way to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from engine.contract import Scope, ToolContext, ToolResult
from engine.services import Services
from engine.starting import CHAINS
from engine.tools.wiki import Wiki
from engine.toolstore import BoundStore
from events.keys import new_id, tenant_column
from events.opening import open_log
from events.store import Store
from projections.attempts import AttemptsProjection

__all__ = ("Run", "failure", "opened", "runner", "text_of")

Run = Callable[..., Awaitable[Any]]


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    log = await open_log(url, AttemptsProjection(), CHAINS)
    try:
        yield log.store
    finally:
        await log.aclose()


def runner(store: Any, user: str | None = "ada", tool_id: str = "w1", owner: str | None = "ada", **config: Any) -> Run:
    """Return a function that runs an action as this user on this row; each run is a call of its own."""
    tool = Wiki(config, Scope(user_id=user, owner=owner, tool_id=tool_id, services=Services(store=store)))
    bound = BoundStore(store, tenant_column(user), tool_id)

    async def run(action: str, /, key: str | None = None, **kwargs: Any) -> Any:
        context = ToolContext(
            user_id=user,
            message_id="m1",
            call_id="c1",
            conversation_id=None,
            run_id=None,
            agent_id=None,
            attachments=(),
            idempotency_key=key or new_id(),
            deadline=datetime.now(UTC),
            progress=lambda done, total, message: None,
            store=bound,
        )
        return await tool.execute_action(action, context, **kwargs)

    return run


def failure(result: Any) -> str:
    """Return what an error result says."""
    assert isinstance(result, ToolResult), result
    assert result.status == "error"
    return str(result.data)


def text_of(result: Any) -> str:
    """Return what stands between the marks of a result, once."""
    assert isinstance(result, str), result
    opening = next(line for line in result.split("\n") if line.startswith("<<<"))
    mark = opening[3:19]
    body: str = result[result.index(opening) + len(opening) + 1 : result.index(f"\n{mark}>>>")]
    assert body.count(mark) == 0
    return body
