"""Running one tool: its deadline, its thread if it is sync, and what its ending means (DESIGN 6, Executing)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import anyio
import anyio.to_thread
import msgspec

from events.bridge import cancellation_requested
from events.types import FailureKind

__all__ = ("Broke", "Returned", "Run", "describe_exception", "run_tool")


class Returned(msgspec.Struct, frozen=True):
    """The tool returned ``value`` after ``duration`` seconds."""

    value: Any
    duration: float


class Broke(msgspec.Struct, frozen=True):
    """The tool did not come to a result; ``error`` is what it raised, if it raised."""

    kind: FailureKind
    message: str
    exception_type: str | None = None
    error: BaseException | None = None


Run: TypeAlias = Returned | Broke

_LOOSE_END = "it runs in a thread that cannot be stopped, so its work may still complete"


async def run_tool(action: Callable[[], Any], is_async: bool, timeout: float, limiter: anyio.CapacityLimiter) -> Run:
    """Run a tool's action to its end or its deadline.

    Whatever the tool raises is returned, except a cancellation that came from outside and KeyboardInterrupt, which are
    raised: the caller closes the call. A sync action runs in a worker thread with the caller's context variables;
    at its deadline the thread is left behind, for it cannot be stopped.

    :param timeout: seconds
    :param limiter: bounds the worker threads
    """
    started = anyio.current_time()
    try:
        with anyio.move_on_after(timeout) as deadline:
            value = await _call(action, is_async, limiter)
            return Returned(value, anyio.current_time() - started)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # Not swallowed: a cancellation from outside goes on, anything else becomes a Failed event.
        if _comes_from_outside(error):
            raise
        return Broke("exception", describe_exception(error), type(error).__name__, error)
    assert deadline.cancelled_caught
    loose_end = "" if is_async else f"; {_LOOSE_END}"
    return Broke("timeout", f"the tool did not finish within {timeout:g} s{loose_end}")


async def _call(action: Callable[[], Any], is_async: bool, limiter: anyio.CapacityLimiter) -> Any:
    if is_async:
        value = action()
    else:
        value = await anyio.to_thread.run_sync(action, abandon_on_cancel=True, limiter=limiter)
    return await value if inspect.isawaitable(value) else value


def _comes_from_outside(error: BaseException) -> bool:
    cancelled = anyio.get_cancelled_exc_class()
    if any(isinstance(leaf, KeyboardInterrupt) for leaf in _leaves(error)):
        return True
    return any(isinstance(leaf, cancelled) for leaf in _leaves(error)) and cancellation_requested()


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def describe_exception(error: BaseException) -> str:
    """Return what an exception says, with its type; of a group, what its parts say (EXECUTE-05)."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_named(leaf) for leaf in _leaves(error))
    return _named(error)


def _named(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
