"""What is stuck, and what became of it: the report of a reconciliation, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, Literal, TypeAlias, get_args

import msgspec
from msgspec.structs import astuple, fields, replace

__all__ = ("LISTED", "ReconcileReport", "StuckCall", "StuckCounts", "StuckKind")

StuckKind: TypeAlias = Literal["orphaned", "expired", "timed_out", "held", "resumable", "unresumed", "unconfirmed"]
"""Why a call is stuck, and so what becomes of it.

Closed: ``orphaned``, its worker is gone, and what it did is not known; ``expired``, nobody let it go on in time;
``timed_out``, nothing came back from its client, or for its tool, in time. Left: ``held``, its worker looks gone, but
this one cannot be sure of that yet; ``resumable``, its worker is gone, and a takeover may still run it again.
Reported: ``unresumed``, approved and never run; ``unconfirmed``, executed and never confirmed."""

LISTED: Final = 100
"""How many calls of one kind a report names."""

_CLOSED: Final = ("orphaned", "expired", "timed_out")


class StuckCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call that is stuck.

    :ivar user_id: its tenant
    :ivar state: how it stood, as ``status/gate``
    :ivar age: seconds for which it had stood so
    :ivar worker: the engine that proposed or claimed it
    :ivar done: what was done about it, or in a dry run would be, for people
    """

    kind: StuckKind
    user_id: str | None
    key: str
    tool_name: str
    action_name: str
    state: str
    age: float
    worker: str
    done: str


class StuckCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many calls there are of each kind.

    :ivar moved: calls that somebody else moved on while they were looked at
    :ivar failing: calls that could not be closed; they will be tried again
    """

    orphaned: int = 0
    expired: int = 0
    timed_out: int = 0
    held: int = 0
    resumable: int = 0
    unresumed: int = 0
    unconfirmed: int = 0
    moved: int = 0
    failing: int = 0

    @property
    def closed(self) -> int:
        """How many were closed."""
        return self.orphaned + self.expired + self.timed_out

    def __str__(self) -> str:
        said = [f"{count} {field.name.replace('_', ' ')}" for field, count in self._pairs() if count]
        return ", ".join(said) or "nothing is stuck"

    def _pairs(self) -> Iterable[tuple[msgspec.structs.FieldInfo, int]]:
        return zip(fields(self), astuple(self), strict=True)


class ReconcileReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a reconciliation found, of every tenant; for operators.

    :ivar dry_run: nothing was closed: ``orphaned``, ``expired`` and ``timed_out`` would have been
    :ivar at: when, by the clock that all workers share
    :ivar steady_in: seconds for which this worker must go on renewing its own lease before it closes what is ``held``;
        0: it may
    :ivar counts: how many there are of each kind
    :ivar calls: of each kind the first ``LISTED``
    :ivar problems: why calls could not be closed, a line each, likewise
    """

    dry_run: bool
    at: datetime
    steady_in: float = 0.0
    counts: StuckCounts = StuckCounts()
    calls: tuple[StuckCall, ...] = ()
    problems: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.counts}{' (dry run: nothing was closed)' if self.dry_run else ''}"

    def of(self, kind: StuckKind) -> tuple[StuckCall, ...]:
        """Return the calls of one kind."""
        return tuple(call for call in self.calls if call.kind == kind)

    def unlisted(self, kind: StuckKind) -> int:
        """Return how many calls of a kind are counted and not named."""
        return int(getattr(self.counts, kind)) - len(self.of(kind))

    def followed_by(self, later: ReconcileReport) -> ReconcileReport:
        """Return what two rounds, one after the other, come to: what either closed, and what the later left."""
        closed = {kind: getattr(self.counts, kind) + getattr(later.counts, kind) for kind in (*_CLOSED, "moved")}
        calls = [
            call
            for kind in get_args(StuckKind)
            for call in ((*self.of(kind), *later.of(kind))[:LISTED] if kind in _CLOSED else later.of(kind))
        ]
        return replace(later, counts=replace(later.counts, **closed), calls=tuple(calls))
