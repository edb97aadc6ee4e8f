"""``engine.rows.offers``: rows of others that wait until a user accepts them into its turns."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from engine.row_definition import KeptRow
from events.keys import require_storable
from events.persistence import run_to_end
from events.store import Store

__all__ = ("Offers",)


class Offers:
    """What is shared to a user, or to everyone: in a user's turns only once that user has accepted it.

    An acceptance is of one share: it ends with it, and is not there when the row is shared anew. Later versions of the
    row need none. A change holds at the next call of every worker.
    """

    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock

    def __repr__(self) -> str:
        return f"<Offers of {self._store!r}>"

    async def list(self, *, user_id: str | None) -> list[KeptRow]:
        """Return the rows that wait for a user, without their secrets; inactive ones too.

        :raises LogUnavailable: if they cannot be read
        """
        from engine.row_changes import read_kept

        require_storable(user_id, "the user id")
        return [kept for kept in await read_kept(self._store, user_id) if not kept.accepted]

    async def accept(self, row_id: str, *, user_id: str | None, version: int | None = None) -> KeptRow:
        """Take a row into a user's turns, and return it, without its secrets; one that was accepted stays so.

        :param version: the version that was looked at; None: whichever it is
        :raises NotFound: if it is not shared to the user
        :raises Refused: if it is the user's own, or comes through a team
        :raises Conflict: if the row is at another version
        :raises LogUnavailable: if it was not written, or that is not known
        """
        from engine.acceptances import insert_acceptance

        _require_storable(row_id, user_id)
        now = self._clock()
        work = partial(insert_acceptance, user_id=user_id, row_id=row_id, version=version, now=now)
        return (await run_to_end(partial(self._store.transact, work))).shown

    async def withdraw(self, row_id: str, *, user_id: str | None) -> KeptRow:
        """Take an accepted row out of a user's turns, and return it; it waits again, or comes through a team still.

        :raises NotFound: if it is not shared to the user
        :raises Refused: if it is the user's own, or comes through a team only
        :raises LogUnavailable: if it was not written, or that is not known
        """
        from engine.acceptances import remove_acceptance

        _require_storable(row_id, user_id)
        work = partial(remove_acceptance, user_id=user_id, row_id=row_id)
        return (await run_to_end(partial(self._store.transact, work))).shown


def _require_storable(row_id: str, user_id: str | None) -> None:
    require_storable(user_id, "the user id")
    require_storable(row_id, "the row id")
