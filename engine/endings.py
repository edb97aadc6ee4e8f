"""What ends a call: appended to the log, or spooled while that cannot be written (DESIGN 6, Journal down)."""

from __future__ import annotations

from engine.journal import Journal
from engine.outage import is_outage
from engine.spool import Spool
from engine.spool_entry import Late
from events.errors import LogUnavailable
from events.types import Denied, Executed, Failed, Paused, Proposed

__all__ = ("Endings",)


class Endings:
    """Sees to it that what ended a call is somewhere on disk before anybody is told of it.

    :param spool: None: nothing can be spooled
    """

    def __init__(self, journal: Journal, spool: Spool | None) -> None:
        self._journal = journal
        self._spool = spool

    def __repr__(self) -> str:
        return f"<Endings to {self._journal!r}, else to {self._spool!r}>"

    @property
    def away(self) -> bool:
        """Whether calls wait for the log to come back: then it is not asked before what nobody waits for is spooled."""
        return self._spool is not None and self._spool.waiting

    async def append(self, proposed: Proposed, outcome: Late, version: int) -> Paused | Denied | Executed | Failed:
        """Append what ends a call, or spool it.

        :raises Conflict: if the attempt has been closed by somebody else, or cannot be closed like this
        :raises LogUnavailable: if it can be neither appended nor spooled
        """
        try:
            return await self._journal.close(proposed, outcome, version)
        except LogUnavailable as outage:
            return await self.spool(proposed, outcome, version, outage)

    async def spool(
        self,
        proposed: Proposed,
        outcome: Late,
        version: int,
        outage: LogUnavailable | None = None,
        *,
        told: bool = True,
        claim: str | None = None,
    ) -> Late:
        """Spool what ends a call; see ``Spool.end``.

        :param version: of its stream; 0: its proposal was spooled
        :param outage: why it is not appended
        :raises LogUnavailable: if it cannot be spooled, or it is no outage that keeps it from being appended
        """
        if self._spool is None or (outage is not None and not is_outage(outage)):
            raise outage or LogUnavailable(f"the end of call {proposed.key!r} cannot be spooled: there is no spool")
        try:
            return await self._spool.end(proposed, outcome, version, told=told, claim=claim)
        except LogUnavailable as error:
            raise error if outage is None else LogUnavailable(f"{outage}; {error}") from error
