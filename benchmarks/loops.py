"""The event loops on which everything is measured."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar, TypeVarTuple, Unpack

import anyio

__all__ = ("LOOPS", "run_on")

T = TypeVar("T")
Args = TypeVarTuple("Args")

LOOPS: tuple[str, ...] = ("asyncio", "trio")


def run_on(loop: str, function: Callable[[Unpack[Args]], Awaitable[T]], *args: *Args) -> T:
    """Run an async function on an event loop of its own."""
    return anyio.run(function, *args, backend=loop)
