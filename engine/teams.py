"""``engine.rows.teams``: who is in which team, so that rows can be shared to all of its members."""

from __future__ import annotations

from functools import partial

from engine.sharing import Grantee
from events.keys import require_storable
from events.persistence import run_to_end
from events.store import Store

__all__ = ("Teams",)


class Teams:
    """The teams of one journal: an operator's verbs. A team is there as long as somebody is in it.

    A change holds at the next call of every worker.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def __repr__(self) -> str:
        return f"<Teams of {self._store!r}>"

    async def join(self, team: str, user_id: str | None) -> None:
        """Take a user into a team; one who is in it stays.

        :raises Refused: if the team's name or the user's id is none
        :raises LogUnavailable: if it was not written, or that is not known
        """
        from engine.share_changes import insert_member

        name = _usable(team, user_id)
        await run_to_end(partial(self._store.transact, partial(insert_member, team=name, user_id=user_id)))

    async def leave(self, team: str, user_id: str | None) -> None:
        """Take a user out of a team: what is shared to the team is not the user's any more.

        :raises NotFound: if the user is not in it
        :raises LogUnavailable: if it was not written, or that is not known
        """
        from engine.share_changes import remove_member

        name = _usable(team, user_id)
        await run_to_end(partial(self._store.transact, partial(remove_member, team=name, user_id=user_id)))

    async def members(self, team: str) -> list[str | None]:
        """Return who is in a team; nobody, where there is no such team. :raises LogUnavailable: if unreadable"""
        from engine.share_changes import read_members

        return await read_members(self._store, _usable(team, None))

    async def of(self, user_id: str | None) -> list[str]:
        """Return the teams that a user is in. :raises LogUnavailable: if unreadable"""
        from engine.share_changes import read_teams

        require_storable(user_id, "the user id")
        return await read_teams(self._store, user_id)


def _usable(team: str, user_id: str | None) -> str:
    require_storable(user_id, "the user id")
    return Grantee.team(team).name or ""
