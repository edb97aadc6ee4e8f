"""Cancelling a consumer at its k-th await: every place where a cancellation can arrive, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import anyio

from tests.crash.fault_awaits import Driven

__all__ = ("CANCELLERS", "cut_at", "native", "scoped")


async def native(work: Callable[[], Coroutine[Any, Any, None]], at: int) -> bool:
    """Run work in a task that ``Task.cancel`` hits at its ``at``-th await; False if it had fewer. Asyncio only."""

    cut: Driven | None = None

    async def driven() -> None:
        nonlocal cut
        task = asyncio.current_task()
        assert task is not None
        cut = Driven(work(), at, task.cancel)
        await cut

    task = asyncio.ensure_future(driven())
    await asyncio.wait((task,))
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
    assert cut is not None
    return bool(cut.reached)


async def scoped(work: Callable[[], Coroutine[Any, Any, None]], at: int) -> bool:
    """Run work in a cancel scope that is cancelled at its ``at``-th await; False if it had fewer."""
    with anyio.CancelScope() as scope:
        cut = Driven(work(), at, scope.cancel)
        await cut
    return cut.reached


async def twice(work: Callable[[], Coroutine[Any, Any, None]], at: int) -> bool:
    """As :func:`native`, but ``Task.cancel`` keeps being called, once per turn of the loop, until the task ends."""

    cut: Driven | None = None

    async def driven() -> None:
        nonlocal cut
        task = asyncio.current_task()
        assert task is not None

        def insist() -> None:
            if not task.done():
                task.cancel()
                asyncio.get_running_loop().call_later(0.001, insist)

        cut = Driven(work(), at, insist)
        await cut

    task = asyncio.ensure_future(driven())
    await asyncio.wait((task,))
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error
    assert cut is not None
    return bool(cut.reached)


CANCELLERS = {"native": native, "insistent": twice, "scope": scoped}


async def cut_at(
    canceller: Callable[[Callable[[], Coroutine[Any, Any, None]], int], Awaitable[bool]],
    work: Callable[[int], Coroutine[Any, Any, None]],
    check: Callable[[int], Awaitable[None]],
    most: int = 200,
) -> int:
    """Run ``work(k)`` cut at its k-th await and ``check(k)`` after it, for every k there is; return how many."""
    for at in range(1, most):
        reached = await canceller(lambda at=at: work(at), at)  # type: ignore[misc]
        await check(at)
        if not reached:
            return at - 1
    raise AssertionError(f"more than {most} awaits")
