"""The first step of a coroutine: to its end, or to where it waits for the first time."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Generator
from types import CoroutineType
from typing import Any

__all__ = ("Rest", "begin")


def begin(awaitable: Awaitable[Any]) -> Any:
    """Take the first step of a coroutine: return what it returned, or its :class:`Rest` if it waits for something.

    It is taken in the task that would await the coroutine, and the rest must be awaited there before anything else.
    What is awaitable otherwise has taken no step, and is all rest.

    :raises BaseException: what the coroutine raises
    """
    if type(awaitable) is not CoroutineType:
        return Rest(_awaited(awaitable))
    try:
        waiting = awaitable.send(None)
    except StopIteration as end:
        return end.value
    return Rest(awaitable, (waiting,))


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


class Rest(Generator[Any, Any, Any]):
    """What is left of a coroutine, to be awaited.

    :param asked: what it waits for already, of which the event loop is still to be told; empty: nothing
    """

    def __init__(self, coroutine: Coroutine[Any, Any, Any], asked: tuple[Any, ...] = ()) -> None:
        self._coroutine = coroutine
        self._asked = asked

    def __await__(self) -> Rest:
        """Return itself: a coroutine's steps are a generator's."""
        return self

    def send(self, value: Any) -> Any:
        """Tell what it waits for; then go on with it."""
        if self._asked:
            (waiting,), self._asked = self._asked, ()
            return waiting
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        """Go on with the error."""
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """End it."""
        self._coroutine.close()
