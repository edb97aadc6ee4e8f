"""Turns of an engine's tools: held with all workers where there is a database, else within the process."""

from __future__ import annotations

from engine.contract import Scope
from engine.pacing.pace import Pace
from engine.pacing.rate import Rate
from engine.services import Services
from events.errors import LogUnavailable
from events.keys import tenant_column

__all__ = ("Turns", "turns")


class Turns:
    """One per engine; ``services.shared(turns)`` is the engine's one."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._pace = Pace()

    def __repr__(self) -> str:
        return f"<Turns, {self._pace!r}>"

    async def turn(self, scope: Scope, action: str, rate: Rate, longest: float) -> None:
        """Wait for the turn of an action of a row, whoever calls, and count it.

        While the database is away, each process keeps to the rate by itself.

        :param longest: seconds to wait, at most; nobody waits longer than ``PATIENCE``
        :raises TooSoon: if its turn would come later; it was not counted
        """
        # Imported here: it loads SQLAlchemy, which a tool alone need not have.
        from engine.pacing.kept_pace import PATIENCE, Place, kept_turn

        place = Place(tenant_column(scope.owner), scope.tool_id, action)
        store = self._services.store
        if store is not None and store.dialect != "null":
            try:
                await kept_turn(store, place, rate, longest)
            except LogUnavailable:
                pass
            else:
                return
        # With the rate: what one that was edited has left is no debt of the next.
        await self._pace.turn((place, rate), rate, min(longest, PATIENCE))


def turns(services: Services) -> Turns:
    """Return the turns of an engine."""
    return Turns(services)
