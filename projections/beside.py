"""Two pieces of work at once, with the error of either as it was raised."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

__all__ = ("both",)

First = TypeVar("First")
Second = TypeVar("Second")


async def both(first: Callable[[], Awaitable[First]], second: Callable[[], Awaitable[Second]]) -> tuple[First, Second]:
    """Do both at once and return what they return; when one fails, the other is cancelled and its error raised."""
    firsts: list[First] = []
    seconds: list[Second] = []
    errors: list[Exception] = []

    async def run_first() -> None:
        try:
            firsts.append(await first())
        except Exception as error:
            # Raised below: a task group would wrap it.
            errors.append(error)
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(run_first)
        try:
            seconds.append(await second())
        except Exception as error:
            errors.append(error)
            group.cancel_scope.cancel()
    if errors:
        raise errors[0]
    return firsts[0], seconds[0]
