"""A store that keeps nothing (``null://``), and its writer: for measuring the engine alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import anyio
import anyio.lowlevel

from events.errors import Refused
from events.store import Appended, Outcome, Unit, Verdict
from events.writer import Writer

__all__ = ("NullStore", "NullWriter")

T = TypeVar("T")


class NullStore:
    """Accepts every append, gives rising positions, and forgets."""

    dialect = "null"
    epoch = 0

    def __init__(self) -> None:
        self._position = 0

    def __repr__(self) -> str:
        return f"<NullStore at {self._position}>"

    async def commit(self, units: Sequence[Unit]) -> Sequence[Outcome]:
        """See ``Store.commit``; nothing is stored."""
        await anyio.lowlevel.checkpoint()
        return [self.take(unit) for unit in units]

    def take(self, unit: Unit) -> Verdict:
        """Accept one unit at once."""
        moment = datetime.now(UTC)
        # What nearly all units are: one event.
        if len(unit) == 1 and len(unit[0].events) == 1:
            self._position += 1
            return (Appended((self._position,), moment),)
        verdict = []
        for append in unit:
            first, count = self._position + 1, len(append.events)
            self._position += count
            verdict.append(Appended((first,) if count == 1 else tuple(range(first, first + count)), moment))
        return tuple(verdict)

    async def read(self, statement: Any) -> Sequence[Any]:  # noqa: ARG002
        """Return no rows."""
        await anyio.lowlevel.checkpoint()
        return ()

    async def write(self, statements: Sequence[Any]) -> list[int]:
        """Touch no rows."""
        await anyio.lowlevel.checkpoint()
        return [0 for _ in statements]

    async def transact(self, work: Callable[[Any], T]) -> T:  # noqa: ARG002
        """Refuse: there is no database. :raises Refused: always"""
        await anyio.lowlevel.checkpoint()
        raise Refused("null:// stores nothing, so there is nothing to work on; use a database")

    async def head(self) -> int:
        """Return the last position given."""
        await anyio.lowlevel.checkpoint()
        return self._position

    async def wait(self, after: int, timeout: float) -> None:  # noqa: ARG002
        """Wait: nothing will ever be readable."""
        await anyio.sleep(timeout)

    async def aclose(self) -> None:
        """Nothing to close."""
        await anyio.lowlevel.checkpoint()


class NullWriter(Writer):
    """Gives each append its positions at once: with no transaction to share, there is no queue, leader or group.

    What the group costs is thereby no part of what is measured on ``null://``, and no batch is observed.
    """

    def __init__(self, store: NullStore) -> None:
        super().__init__(store)
        self._nothing = store

    async def submit(self, unit: Unit) -> Verdict:
        """See ``Writer.submit``; cancelled, nothing was taken.

        Others have their turn where a stream begins; what follows in it has nothing to wait for.
        """
        if unit[0].expected_version == 0:
            await anyio.lowlevel.checkpoint()
        self._batches += 1
        self._appends += 1
        self._largest = 1
        return self._nothing.take(unit)
