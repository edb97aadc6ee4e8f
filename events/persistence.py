"""Work that must reach its end whatever cancels the caller: AnyIO's scopes, or a plain ``task.cancel()``.

A shielded scope alone does not keep asyncio's own cancellation out, which agent loops use (``asyncio.timeout``, a
server dropping a request). Both functions let the cancellation take effect afterwards; none is ever swallowed.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import anyio
import anyio.lowlevel

from events.bridge import on_asyncio, to_the_end

__all__ = ("run_to_end", "wait_to_end")

T = TypeVar("T")


async def run_to_end(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run ``work`` to its end, shielded, and return its result; cancelled meanwhile, raise that at the end.

    :raises BaseException: whatever ``work`` raises
    """
    if on_asyncio():
        return await to_the_end(work())
    with anyio.CancelScope(shield=True):
        result = await work()
    await anyio.lowlevel.checkpoint_if_cancelled()
    return result


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
