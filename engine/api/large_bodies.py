"""Work on bodies: in a thread where one is so large that the event loop would stand still."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import anyio.to_thread

__all__ = ("worked",)

T = TypeVar("T")

_AT_ONCE: Final = 1 << 18
"""Bytes of a body that are worked on in the event loop."""


async def worked(work: Callable[[], T], size: int) -> T:
    """Return what ``work`` does. :param size: bytes of the body that it works on"""
    return work() if size <= _AT_ONCE else await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
