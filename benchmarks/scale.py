"""How much is measured: enough to trust, or just enough to see that nothing has broken."""

from __future__ import annotations

import msgspec

__all__ = ("FULL", "QUICK", "TINY", "Scale")


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes of a run.

    :ivar rounds: how often product and comparison alternate
    :ivar appends: appends in one sample, for at least 64 callers; fewer callers do fewer
    :ivar slice: seconds that one sample of a bare loop takes
    :ivar callers: how many append or execute at once
    :ivar events: events in the log that is read, on SQLite
    :ivar postgres_events: the same, on Postgres
    :ivar result: characters of a long result
    """

    rounds: int
    appends: int
    slice: float
    callers: tuple[int, ...]
    events: int
    postgres_events: int
    result: int = 10_000_000

    def appends_by(self, callers: int) -> int:
        """Return how many appends a sample has; even, and the same number for every caller."""
        total = self.appends if callers >= 64 else self.appends // 4 if callers > 1 else self.appends // 16
        return max(2, total // callers // 2 * 2) * callers


FULL = Scale(rounds=5, appends=10_240, slice=0.25, callers=(1, 8, 64, 256), events=1_000_000, postgres_events=100_000)
QUICK = Scale(rounds=3, appends=2_560, slice=0.1, callers=(1, 64), events=50_000, postgres_events=10_000)
TINY = Scale(rounds=1, appends=64, slice=0.01, callers=(1, 8), events=2_000, postgres_events=1_000, result=1_000_000)
