"""Work that must reach its end whatever cancels the caller: AnyIO's scopes, or a plain ``task.cancel()``.

A shielded scope alone does not keep asyncio's own cancellation out, which agent loops use (``asyncio.timeout``, a
server dropping a request). Both functions let the cancellation take effect afterwards; none is ever swallowed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

__all__ = ("run_to_end", "wait_to_end")

T = TypeVar("T")


async def run_to_end(work: Callable[[], Awaitable[T]]) -> T:
    """Run ``work`` in a task of its own, shielded, and return its result; cancelled meanwhile, raise that at the end.

    :raises BaseException: whatever ``work`` raises, unwrapped
    """
    results: list[T] = []
    errors: list[BaseException] = []

    async def shielded() -> None:
        with anyio.CancelScope(shield=True):
            try:
                results.append(await work())
            except Exception as error:
                errors.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(shielded)
    if errors:
        raise errors[0]
    return results[0]


async def wait_to_end(event: anyio.Event) -> BaseException | None:
    """Wait for ``event`` however often the caller is cancelled; return the cancellation, for the caller to raise."""
    cancelled = anyio.get_cancelled_exc_class()
    try:
        await event.wait()
    except cancelled as error:
        interruption: BaseException = error
    else:
        return None
    # The shield comes only now: hardly any wait is ever cancelled, and each would pay for it.
    with anyio.CancelScope(shield=True):
        while not event.is_set():
            try:
                await event.wait()
            except cancelled as error:
                interruption = error
    return interruption
