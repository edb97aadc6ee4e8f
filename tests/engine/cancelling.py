"""Cancelling a consumer at its k-th await: every place where a cancellation can arrive, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

import anyio

__all__ = ("CANCELLERS", "Cut", "cut_at", "native", "scoped")


class Cut(Awaitable[None]):
    """A coroutine that is driven as its loop would, until its ``at``-th suspension: then ``cancel`` is called.

    :ivar reached: whether there was such a suspension
    """

    def __init__(self, work: Coroutine[Any, Any, None], at: int, cancel: Callable[[], object]) -> None:
        self._work = work
        self._at = at
        self._cancel = cancel
        self._count = 0
        self.reached = False

    def __await__(self) -> Generator[Any, Any, None]:
        steps = self._work.__await__()
        answer: Any = None
        error: BaseException | None = None
        while True:
            try:
                asked = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration:
                return
            self._count += 1
            if self._count == self._at:
                self.reached = True
                self._cancel()
            try:
                answer, error = (yield asked), None
            except BaseException as raised:
                answer, error = None, raised


async def native(work: Callable[[], Coroutine[Any, Any, None]], at: int) -> bool:
    """Run work in a task that ``Task.cancel`` hits at its ``at``-th await; False if it had fewer. Asyncio only."""

    cut: Cut | None = None

    async def driven() -> None:
        nonlocal cut
        task = asyncio.current_task()
        assert task is not None
        cut = Cut(work(), at, task.cancel)
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
        cut = Cut(work(), at, scope.cancel)
        await cut
    return cut.reached


async def twice(work: Callable[[], Coroutine[Any, Any, None]], at: int) -> bool:
    """As :func:`native`, but ``Task.cancel`` keeps being called, once per turn of the loop, until the task ends."""

    cut: Cut | None = None

    async def driven() -> None:
        nonlocal cut
        task = asyncio.current_task()
        assert task is not None

        def insist() -> None:
            if not task.done():
                task.cancel()
                asyncio.get_running_loop().call_later(0.001, insist)

        cut = Cut(work(), at, insist)
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
