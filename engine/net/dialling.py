"""A connection to one of several addresses, more than one being tried at once where the first is slow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, Protocol, TypeVar

import anyio

__all__ = ("Closeable", "closed", "dial")

_HEAD_START: Final = 0.25


class Closeable(Protocol):
    """What a connection is here: something to close."""

    async def aclose(self) -> None:
        """Close it; at once, on cancellation too."""


S = TypeVar("S", bound=Closeable)


async def dial(
    connect: Callable[[str], Awaitable[S]], addresses: Sequence[str], failures: tuple[type[Exception], ...]
) -> S:
    """Return the first connection that comes about, each address having a quarter of a second's start on the next.

    An address that fails gives way at once. Losers are closed, and on cancellation the winner too.

    :param failures: the errors by which ``connect`` says that an address does not answer
    :raises Exception: the last of these, if no address answers
    """
    if len(addresses) == 1:
        return await connect(addresses[0])
    race = _Race(connect, failures)
    try:
        await race.run(addresses)
    except BaseException:
        await race.forfeit()
        raise
    return race.result()


async def closed(connection: Closeable) -> None:
    """Close a connection, come what may."""
    with anyio.CancelScope(shield=True):
        await connection.aclose()


class _Race(Generic[S]):
    """Connections to several addresses, of which one wins."""

    def __init__(self, connect: Callable[[str], Awaitable[S]], failures: tuple[type[Exception], ...]) -> None:
        self._connect = connect
        self._failures = failures
        self._winner: S | None = None
        self._failure: Exception | None = None

    async def run(self, addresses: Sequence[str]) -> None:
        """Race until one has won or all have failed."""
        async with anyio.create_task_group() as runners:
            for address in addresses:
                failed = anyio.Event()
                runners.start_soon(self._try, address, failed, runners.cancel_scope)
                with anyio.move_on_after(_HEAD_START):
                    await failed.wait()

    async def _try(self, address: str, failed: anyio.Event, race: anyio.CancelScope) -> None:
        try:
            stream = await self._connect(address)
        except self._failures as error:
            self._failure = error
            failed.set()
            return
        if self._winner is None:
            self._winner = stream
            race.cancel()
        else:
            await closed(stream)

    async def forfeit(self) -> None:
        """Close the winner, if there is one: nobody waits for it any more."""
        if self._winner is not None:
            await closed(self._winner)

    def result(self) -> S:
        """Return the winner. :raises Exception: the last failure, if there is none"""
        if self._winner is not None:
            return self._winner
        raise self._failure or OSError("there is no address")
