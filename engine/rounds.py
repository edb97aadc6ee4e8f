"""The reconciliations of one engine: what they stand on, and what they have come to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol

import msgspec

from engine.stuck import ReconcileReport, StuckCounts

__all__ = ("Assurance", "RoundStatistics", "Rounds")


class Assurance(Protocol):
    """This worker's own lease, as a reconciliation needs it (see ``engine.lease.Lease``)."""

    async def assured(self) -> float:
        """Renew it, and return for how many more seconds it must be held before anybody is declared dead by it."""
        ...


class RoundStatistics(msgspec.Struct, frozen=True):
    """A snapshot: rounds that ended well, and in the background that did not; calls closed; what the last one found."""

    done: int = 0
    broken: int = 0
    closed: int = 0
    last: StuckCounts = StuckCounts()


class Rounds:
    """What one engine's reconciliations share.

    :ivar lease: the engine's own
    :ivar now: gives the moment by the clock that all workers share
    """

    def __init__(self, lease: Assurance, now: Callable[[], Awaitable[datetime]]) -> None:
        self.lease = lease
        self.now = now
        self._statistics = RoundStatistics()

    def __repr__(self) -> str:
        return f"<Rounds {self._statistics.done} done, last: {self._statistics.last}>"

    def statistics(self) -> RoundStatistics:
        """Return a snapshot."""
        return self._statistics

    def ended(self, report: ReconcileReport) -> None:
        """Note a round that ended well; a dry run is none."""
        if not report.dry_run:
            before = self._statistics
            closed = before.closed + report.counts.closed
            self._statistics = RoundStatistics(before.done + 1, before.broken, closed, report.counts)

    def broke(self) -> None:
        """Note a round that broke off."""
        before = self._statistics
        self._statistics = RoundStatistics(before.done, before.broken + 1, before.closed, before.last)
