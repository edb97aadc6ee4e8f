"""The awaits of a coroutine, counted by hand; at a chosen one the process dies, or the coroutine is cancelled.

An await is one suspension of the coroutine: it has asked its event loop for something and hands over. The fault comes
there, or (``answered``) when the loop has brought the answer and the coroutine is about to go on.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Literal, TypeAlias

import anyio
import anyio.lowlevel

__all__ = ("FAULTS", "Driven", "Fault", "faults_of", "struck")

Fault: TypeAlias = Literal["none", "kill", "kill-answered", "cancel", "cancel-native"]

FAULTS: tuple[Fault, ...] = ("kill", "kill-answered", "cancel", "cancel-native")
"""SIGKILL as the coroutine is suspended, SIGKILL as it goes on, AnyIO's cancellation, asyncio's ``Task.cancel``."""


def faults_of(backend: str) -> tuple[Fault, ...]:
    """Return the faults that a loop knows; one that differs from asyncio's in speed alone only cancels its tasks."""
    match backend:
        case "asyncio":
            return FAULTS
        case "trio":
            return FAULTS[:3]
        case _:
            return FAULTS[3:]


class Driven(Awaitable[None]):
    """A coroutine that is driven as its loop would, and struck at its ``at``-th await; 0: at none.

    :ivar count: its awaits so far
    """

    def __init__(
        self, work: Coroutine[Any, Any, None], at: int = 0, strike: Callable[[], object] = int, answered: bool = False
    ) -> None:
        self._work = work
        self._at = at
        self._strike = strike
        self._answered = answered
        self.count = 0

    @property
    def reached(self) -> bool:
        """Whether it had the await at which it was to be struck."""
        return 0 < self._at <= self.count

    def __await__(self) -> Generator[Any, Any, None]:
        steps = self._work.__await__()
        answer: Any = None
        error: BaseException | None = None
        while True:
            try:
                asked = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration:
                return
            self.count += 1
            if self.count == self._at and not self._answered:
                self._strike()
            try:
                answer, error = (yield asked), None
            except BaseException as raised:
                answer, error = None, raised
            if self.count == self._at and self._answered:
                self._strike()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def struck(work: Callable[[], Coroutine[Any, Any, None]], fault: Fault, at: int) -> Driven:
    """Run work until it ends or is struck, and return how it was driven; struck by a kill, do not return.

    :raises AssertionError: if a cancellation was swallowed: the work went on as if nothing had happened
    """
    match fault:
        case "cancel":
            with anyio.CancelScope() as scope:
                driven = Driven(work(), at, scope.cancel)
                await driven
                # A read in a thread is waited for: a cancellation during the last one takes effect here.
                await anyio.lowlevel.checkpoint()
            cancelled = scope.cancelled_caught
        case "cancel-native":
            driven, cancelled = await _natively(work, at)
        case _:
            driven = Driven(work(), at, _die, answered=fault == "kill-answered")
            await driven
            return driven
    assert cancelled == driven.reached, f"{fault} at await {at}: reached {driven.reached}, took effect {cancelled}"
    return driven


async def _natively(work: Callable[[], Coroutine[Any, Any, None]], at: int) -> tuple[Driven, bool]:
    driven = Driven(work(), at, lambda: task.cancel())

    async def run() -> None:
        await driven

    task = asyncio.ensure_future(run())
    await asyncio.wait((task,))
    if not task.cancelled():
        # What it raised otherwise is raised here.
        task.result()
    return driven, task.cancelled()
