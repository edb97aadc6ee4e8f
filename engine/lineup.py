"""The order in which a turn's calls start: as the model made them, those of a serial tool's row one at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush

import msgspec

from engine.flight import Flight
from engine.proposal import Proposal

__all__ = ("Lineup", "ReadyCall")


class ReadyCall(msgspec.Struct, frozen=True, order=False):
    """A proposed call that may start; ``place`` is where it stands in its turn."""

    place: int
    flight: Flight
    proposal: Proposal

    def __lt__(self, other: ReadyCall) -> bool:
        return self.place < other.place

    @property
    def serial_row(self) -> str | None:
        """The row whose calls run one after another, if this call's tool asks for that."""
        member = self.proposal.member
        return member.row.id if member is not None and member.tool is not None and member.tool.serial else None


class Lineup:
    """Gives out calls in order; of a serial tool's row, the next one only when the one before has come back.

    :param calls: in the order of the turn
    """

    def __init__(self, calls: Sequence[ReadyCall]) -> None:
        self._ready: list[ReadyCall] = []
        self._behind: dict[str, deque[ReadyCall]] = {}
        for call in calls:
            row = call.serial_row
            if row is not None and row in self._behind:
                self._behind[row].append(call)
                continue
            if row is not None:
                self._behind[row] = deque()
            self._ready.append(call)

    def __len__(self) -> int:
        return len(self._ready)

    def __repr__(self) -> str:
        return f"<Lineup {len(self._ready)} ready, {sum(map(len, self._behind.values()))} behind others>"

    def take(self) -> ReadyCall | None:
        """Return the next call that may start; None: there is none now, and only who holds one can make one."""
        return heappop(self._ready) if self._ready else None

    def give_back(self, call: ReadyCall) -> None:
        """Say that a call has ended, or waits."""
        behind = self._behind.get(call.serial_row or "")
        if behind:
            heappush(self._ready, behind.popleft())
