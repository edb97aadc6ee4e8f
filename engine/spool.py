"""The spool: what a call left to be recorded while the journal was away, kept on this machine (DESIGN 6, Journal down).

What is kept is on disk before anybody is told of it, survives its process, and is written to the log by
``engine/draining.py``. Only proposals and what ends a call are kept; what allows or claims one never is.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from engine.parked import parked_calls, parked_size
from engine.settings import Settings
from engine.spool_entry import Late
from engine.spool_folder import Kept, SpoolFolder
from engine.spool_place import spool_place
from events.codec import Codec
from events.errors import LogUnavailable
from events.sqlite_lane import Lane
from events.types import Proposed

__all__ = ("Spool", "SpoolStatistics", "open_spool")

T = TypeVar("T")

_TICK = 50_000_000
"""Nanoseconds: more than any file system's clock stands still."""


class SpoolStatistics(msgspec.Struct, frozen=True):
    """A snapshot of a spool.

    :ivar depth: calls that this engine has to write to the log
    :ivar oldest: seconds for which the oldest of them has been waiting; 0 where there is none
    :ivar parked: calls that the log refused for good, in the journal's folder
    """

    depth: int = 0
    oldest: float = 0.0
    parked: int = 0


class Spool:
    """One engine's share of its journal's spool.

    :ivar waiting: whether anything is known to be spooled on this machine; looked at before every call, so it is kept
        ready
    """

    def __init__(self, folder: Path, worker: str, limit: int) -> None:
        self.waiting = False
        self.folder = folder
        self._files = SpoolFolder(folder, worker, limit, Codec())
        # Its thread is started by the first who needs it.
        self._lane: Lane | None = None
        self._depth = 0
        self._beginning = 0
        self._oldest: float | None = None
        self._parked = 0
        self._parked_size = 0
        self._closed = False
        self._seen = 0
        self._tell: Callable[[], None] = _tell_nobody

    def __repr__(self) -> str:
        return f"<Spool {self.folder} {self._depth} calls, {self._parked} parked>"

    def statistics(self) -> SpoolStatistics:
        """Return a snapshot."""
        # Read once: the spool's own thread may forget it meanwhile.
        oldest = self._oldest
        age = 0.0 if oldest is None else max(time.time() - oldest, 0.0)
        return SpoolStatistics(self._depth, age, self._parked)

    def when_kept(self, tell: Callable[[], None]) -> None:
        """Have somebody told whenever something was kept."""
        self._tell = tell

    async def look(self) -> None:
        """Adopt what dead workers of this machine left. :raises LogUnavailable: if the folder cannot be read"""
        stamp = self._stamp()
        await self._do(self._files.look)
        # A file that is made within the same tick of the file system's clock would leave the same stamp.
        self._seen = stamp if time.time_ns() - stamp > _TICK else -1

    async def may_hold(self) -> bool:
        """Return whether a call may be kept here; where the folder has changed, it is looked at first.

        A folder that cannot be looked at holds up no call that the log can take; draining says what is wrong with it.
        """
        if self._stamp() != self._seen:
            with contextlib.suppress(LogUnavailable):
                await self.look()
        return self.waiting

    def _stamp(self) -> int:
        try:
            return self.folder.stat().st_mtime_ns
        except OSError:
            return 0

    async def find(self, proposed: Proposed) -> Kept | None:
        """Return what is kept under a call's key. :raises LogUnavailable: if it cannot be read"""
        return await self._do(partial(self._files.find, proposed))

    async def begin(self, proposed: Proposed, outcome: Late | None = None) -> Kept | None:
        """Keep a proposal, with what follows it at once; or return what is kept under its key already.

        On disk on return. Cancelled while it is under way, it is kept first.

        :raises LogUnavailable: if it cannot be kept: then nothing was
        """
        # Whoever makes the same call meanwhile must look here first, and then waits for this.
        self._beginning += 1
        self.waiting = True
        try:
            known = await self._do(partial(self._files.begin, proposed, outcome))
        finally:
            self._beginning -= 1
        if known is None:
            self._tell()
        return known

    async def end(
        self, proposed: Proposed, outcome: Late, version: int, *, told: bool = True, claim: str | None = None
    ) -> Late:
        """Keep what followed a proposal, and return it as it is yielded: late, and without a position; or what is kept
        of that already.

        On disk on return. Cancelled while it is under way, it is kept first.

        :param version: the version of the call's stream in the log; 0: its proposal was kept here
        :param told: False: nobody is told of it, so it is dropped where the call has moved on
        :param claim: the id of the Resumed that it follows, if that may not be in the log: then it is dropped
        :raises LogUnavailable: if it cannot be kept
        """
        late = replace(outcome, late=True, position=None)
        kept = await self._do(partial(self._files.end, proposed, late, version, told, claim))
        self._tell()
        return kept

    async def holds(self, tenant: str, key: str, turn: str) -> bool:
        """Return whether anything is kept of a key, or of the keys of a turn. :raises LogUnavailable: if unknown"""
        return await self._do(partial(self._files.holds, tenant, key, turn))

    async def pending(self) -> list[str]:
        """Return the proposals of the calls that are to be written to the log, in order."""
        return await self._do(self._files.pending)

    async def load(self, proposal: str) -> Kept | None:
        """Return a call that is to be written. :raises LogUnavailable: if it cannot be read"""
        return await self._do(partial(self._files.load, proposal))

    async def settle(self, kept: Kept, refused: str | None = None) -> None:
        """Forget a call that is in the log as it was loaded; or put it aside, for the log refuses it for good.

        :param refused: why it does
        :raises LogUnavailable: if that cannot be noted
        """
        files, proposal = self._files, kept.proposed.id
        noting = partial(files.written, proposal, kept.outcome_id)
        await self._do(noting if refused is None else partial(files.park, proposal, kept.outcome_id, refused))

    async def _do(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise LogUnavailable(f"the spool {self.folder} has been closed")
        if self._lane is None:
            self._lane = Lane("calljournal-spool")
        try:
            return await self._lane.run(partial(self._done, work))
        except OSError as error:
            remedy = "make room on its disk, and see that it can be written to"
            raise LogUnavailable(f"the spool {self.folder} cannot be used: {_reason(error)}; {remedy}") from error

    def _done(self, work: Callable[[], T]) -> T:
        try:
            return work()
        finally:
            self._depth, self._oldest = len(self._files), self._files.oldest
            self._count_parked()
            self.waiting = self._files.knows_any or self._beginning > 0

    def _count_parked(self) -> None:
        size = parked_size(self.folder)
        if size != self._parked_size:
            self._parked_size = size
            self._parked = len(parked_calls(self.folder))

    async def aclose(self) -> None:
        """Let go of the files; what is left in them is for the next engine on this machine."""
        self._closed = True
        if self._lane is not None:
            await self._lane.run(self._files.close)
            self._lane.close()
            self._lane = None


def open_spool(url: str, worker: str, settings: Settings) -> Spool | None:
    """Return the spool of a journal; None for one that is not on disk itself. Nothing is made before it is needed.

    None too where the system is no POSIX: what holds a file against other processes is not there.
    """
    folder = spool_place(url, settings)
    return None if folder is None or os.name != "posix" else Spool(folder, worker, settings.limits.spool)


def _reason(error: OSError) -> str:
    if error.errno is None:
        return str(error)
    return os.strerror(error.errno) + (f" ({error.filename})" if error.filename else "")


def _tell_nobody() -> None:
    """Nobody drains this spool."""
