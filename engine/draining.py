"""Draining: what is spooled goes to the log as soon as that is back, in order, by whoever of this machine holds it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from engine.journal import Journal
from engine.late_writing import write_late
from engine.outage import is_outage
from engine.spool import Spool, SpoolStatistics
from events.errors import JournalError, LogUnavailable, Unavailable
from events.log import EventLog

__all__ = ("Draining",)

_log = logging.getLogger("calljournal.spool")

_LOOK: Final = 1.0
"""Seconds between two looks for what dead workers of this machine have left, and for what the living hold."""

_FIRST: Final = 0.05
_LONGEST: Final = 2.0
"""Seconds before the log is tried again."""

_GIVES_UP: Final = 2
"""Calls in a row that cannot be written, after which the log counts as away: one alone may be at fault itself."""


class Draining:
    """Writes one engine's share of the spool to the log.

    :param renew: renews this worker's lease, before anything is written: what one without a lease writes looks
        abandoned
    :param observe: is told, after each look, what is spooled
    """

    def __init__(
        self,
        spool: Spool,
        log: EventLog,
        journal: Journal,
        renew: Callable[[], Awaitable[None]],
        observe: Callable[[SpoolStatistics], None] = lambda _statistics: None,
    ) -> None:
        self._spool = spool
        self._log = log
        self._journal = journal
        self._renew = renew
        self._observe = observe
        self._lock = anyio.Lock()
        self._news = anyio.Event()
        self._watched = False
        spool.when_kept(self._kept)

    def __repr__(self) -> str:
        return f"<Draining of {self._spool!r}>"

    def _kept(self) -> None:
        if not self._watched:
            self._watched = True
            # An append that succeeds says that the log is back.
            self._journal.when_appended(self._hurry)

    def _hurry(self) -> None:
        self._news.set()

    async def run(self) -> None:
        """Look, drain, and wait for the next occasion, for ever."""
        pause = _FIRST
        while True:
            self._news = anyio.Event()
            with anyio.move_on_after(pause if self._watched else _LOOK):
                await self._news.wait()
            drained = await self.look()
            pause = _FIRST if drained else min(pause * 2, _LONGEST)

    async def look(self) -> bool:
        """Adopt what dead workers left, and drain; True: nothing is left. What is in the way is logged."""
        try:
            await self._spool.look()
            return await self.drain()
        except Exception as error:
            # Whatever it is: the background of an engine must outlive it.
            known = isinstance(error, JournalError)
            _log.log(logging.WARNING if known else logging.ERROR, "the spool: %s", error, exc_info=not known)
            return False
        finally:
            self._observe(self._spool.statistics())

    async def drain(self) -> bool:
        """Write everything to the log that can be, in order; True: nothing is left.

        Cancelled, it stops between two calls; what it has written is recognised the next time.

        :raises LogUnavailable: if the spool cannot be read
        """
        async with self._lock:
            pending = await self._spool.pending()
            if pending:
                await self._write(pending)
                pending = await self._spool.pending()
            if not pending:
                self._watched = False
                self._journal.when_appended(None)
        return not pending

    async def _write(self, pending: list[str]) -> None:
        failures = 0
        if not await self._is_back():
            return
        for proposal in pending:
            failures = 0 if await self._write_one(proposal) else failures + 1
            if failures == _GIVES_UP:
                return

    async def _is_back(self) -> bool:
        try:
            await self._renew()
        except JournalError as error:
            _log.debug("the lease could not be renewed: %s", error)
            # Two that renew at once may be in each other's way: then the database is there.
            return not isinstance(error, Unavailable)
        return True

    async def _write_one(self, proposal: str) -> bool:
        """Write one call; False: the log is away, or takes just this one not."""
        try:
            kept = await self._spool.load(proposal)
        except LogUnavailable as error:
            # It may be damaged alone: then whoever adopts the file passes it over, and keeps that for people.
            _log.error("a call cannot be read from the spool, those behind it are written: %s", error)
            return False
        if kept is None:
            return True
        refused: str | None = None
        try:
            if not await write_late(self._log, self._journal, kept):
                return True
        except Exception as error:
            if isinstance(error, Unavailable) and (is_outage(error) or not isinstance(error, LogUnavailable)):
                _log.debug("call %s is still to be written: %s", kept.proposed.key, error)
                return False
            # Whatever else is wrong with it, those behind it must not wait for ever.
            _log.error("call %s cannot be written to the log and is put aside: %s", kept.proposed.key, error)
            refused = f"{type(error).__name__}: {error}"
        await self._spool.settle(kept, refused)
        return True
