"""Stored tool rows as turns meet them: kept in memory per user, and never older than the call (DESIGN 6, Tool rows).

As with the operator's rules nothing is polled: every change of a row raises the epoch that every commit reads along.
"""

from __future__ import annotations

import logging
from operator import itemgetter
from typing import Final, TypeAlias

import msgspec

from engine.rows import ToolRow
from engine.tool_policy import NO_STANDINGS, Standings
from events.errors import LogUnavailable
from events.store import Store

__all__ = ("NOTHING_STORED", "RowBook", "StoredRows", "Wanted")

_log = logging.getLogger("calljournal.rows")
_KEPT: Final = 1024


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Whose rows: all that a user's turns have; or, where ``ids`` is given, the ones of these that it may use.

    :ivar vouched: an agent's list answers for its rows, whoever's they are
    :ivar standings: where ``ids`` is given: what the user says of built-in tools is wanted too
    """

    user_id: str | None
    ids: tuple[str, ...] | None = None
    vouched: bool = False
    standings: bool = False


class StoredRows(msgspec.Struct, frozen=True):
    """What was read: the rows, and what the user says of built-in tools.

    :ivar stamp: another one whenever any of it is another
    """

    stamp: int
    rows: tuple[ToolRow, ...] = ()
    standings: Standings = NO_STANDINGS


NOTHING_STORED: Final = StoredRows(0)

_Known: TypeAlias = tuple[int, StoredRows]


class RowBook:
    """The stored rows of the users at work.

    :param store: the journal's; None: nothing is stored
    :ivar keeps: there is a database that may hold rows
    """

    def __init__(self, store: Store | None) -> None:
        self._store = None if store is None or store.dialect == "null" else store
        self._known: dict[Wanted, _Known] = {}
        self._stamps = 0
        self._began = 0
        self.keeps = self._store is not None

    def __repr__(self) -> str:
        return f"<RowBook of {len(self._known)} kinds of turns>"

    def begin(self, epoch: int) -> None:
        """Note the epoch at the start: where nothing ever changed, no call reads any rows."""
        self._began = epoch

    async def rows(self, wanted: Wanted, *, now: bool = False) -> StoredRows:
        """Return the rows as of this engine's last append, or newer ones; reads only where they may have changed.

        In an outage the rows are what was last known of them.

        :param now: as of now, at the price of a read
        """
        if self._store is None:
            return NOTHING_STORED
        known = self._known.get(wanted)
        seen = max(self._began, self._store.epoch)
        if not now:
            if known is not None and known[0] >= seen:
                return known[1]
            if seen == 0:
                return NOTHING_STORED
        try:
            return await self._as_of(await self._epoch() if now else seen, wanted)
        except LogUnavailable as error:
            _log.warning("stored tool rows cannot be read; the last known ones are used: %s", error)
            return self._last_known(wanted)

    async def row(self, row_id: str, user_id: str | None, *, vouched: bool, now: bool = True) -> ToolRow | None:
        """Return one row that a user may use, as it is, in its turns or not; None: there is none."""
        found = await self.rows(Wanted(user_id=user_id, ids=(row_id,), vouched=vouched), now=now)
        return next((row for row in found.rows if row.id == row_id), None)

    async def standings(self, user_id: str | None, *, now: bool) -> Standings:
        """Return what a user says of built-in tools."""
        wanted = Wanted(user_id=user_id)
        if wanted not in self._known:
            wanted = Wanted(user_id=user_id, ids=(), standings=True)
        return (await self.rows(wanted, now=now)).standings

    def last_standings(self, user_id: str | None) -> Standings | None:
        """Return what a user said of built-in tools as it was last known, without reading; None: it never was.

        It is not known where something changed after it was last read.
        """
        seen = 0 if self._store is None else max(self._began, self._store.epoch)
        if seen == 0:
            return NO_STANDINGS
        said = [
            (epoch, stored.standings)
            for wanted, (epoch, stored) in self._known.items()
            if wanted.user_id == user_id and (wanted.ids is None or wanted.standings) and epoch >= seen
        ]
        return max(said, key=itemgetter(0))[1] if said else None

    async def _epoch(self) -> int:
        assert self._store is not None
        from engine.epoch import read_epoch

        return await read_epoch(self._store)

    async def _as_of(self, epoch: int, wanted: Wanted) -> StoredRows:
        known = self._known.get(wanted)
        if known is None or known[0] != epoch:
            stored = await self._read(epoch, wanted)
            if known is None or (known[1].rows, known[1].standings) != (stored.rows, stored.standings):
                self._stamps += 1
                stamped = StoredRows(self._stamps, stored.rows, stored.standings)
                known = (epoch, stamped if stored.rows or stored.standings else NOTHING_STORED)
            known = (epoch, known[1])
        self._known.pop(wanted, None)
        while len(self._known) >= _KEPT:
            del self._known[next(iter(self._known))]
        self._known[wanted] = known
        return known[1]

    async def _read(self, epoch: int, wanted: Wanted) -> StoredRows:
        if epoch == 0:
            return NOTHING_STORED
        assert self._store is not None
        from engine.row_store import read_rows, read_standings, read_turn, read_vouched

        if wanted.ids is None:
            return StoredRows(0, *await read_turn(self._store, wanted.user_id))
        rows: list[ToolRow] = []
        if wanted.ids and wanted.vouched:
            rows = await read_vouched(self._store, wanted.ids)
        elif wanted.ids:
            rows = await read_rows(self._store, wanted.user_id, wanted.ids)
        standings = await read_standings(self._store, wanted.user_id) if wanted.standings else NO_STANDINGS
        return StoredRows(0, tuple(rows), standings)

    def _last_known(self, wanted: Wanted) -> StoredRows:
        """Return what was last read of these rows, by themselves or among all of their user's."""
        known = self._known.get(wanted)
        if known is not None or wanted.ids is None:
            return NOTHING_STORED if known is None else known[1]
        _, every = self._known.get(Wanted(user_id=wanted.user_id), (0, NOTHING_STORED))
        standings = every.standings if wanted.standings else NO_STANDINGS
        return StoredRows(every.stamp, tuple([row for row in every.rows if row.id in wanted.ids]), standings)
