"""What is the matter with a suspect, told from its row, the time and the limits alone."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from engine.settings import Limits
from engine.stuck import StuckCall, StuckKind
from engine.suspects import Suspect
from events.transitions import describe

__all__ = ("Finding", "judge", "takeover_end")

_CLOSINGS: Final = {
    "orphaned": "closed as failed (orphaned): its worker is gone, and what it did is not known",
    "expired": "closed as denied (expired): nobody let it go on before its deadline",
    "timed_out": "closed as failed (timeout): nothing came back before its deadline; it may have had its effect",
}
_UNRESUMED: Final = "reported: it was approved, and nobody has run it"
_UNCONFIRMED: Final = "reported: it ran, and the message that carries its result was never confirmed"


class Finding(msgspec.Struct, frozen=True):
    """A suspect that is stuck, and why.

    :ivar left: seconds for which it is left alone, if it is
    """

    kind: StuckKind
    suspect: Suspect
    left: float = 0.0

    @property
    def closing(self) -> bool:
        """Whether its call is to be closed."""
        return self.kind in _CLOSINGS

    def call(self, now: datetime, *, dry_run: bool) -> StuckCall:
        """Return it as a report names it."""
        suspect = self.suspect
        return StuckCall(
            kind=self.kind,
            user_id=suspect.user_id,
            key=suspect.key,
            tool_name=suspect.tool_name,
            action_name=suspect.action_name,
            state=describe(suspect.attempt),
            age=max(0.0, (now - suspect.updated_at).total_seconds()),
            worker=suspect.worker,
            done=self._done(dry_run),
        )

    def _done(self, dry_run: bool) -> str:
        match self.kind:
            case "held":
                return (
                    "left: its worker looks gone, and that can be told for certain only after this worker has held its "
                    f"own lease for {self.left:.0f} s more"
                )
            case "resumable":
                return f"left: its worker is gone, and for {self.left:.0f} s more it may be taken over and run again"
            case "unresumed":
                return _UNRESUMED
            case "unconfirmed":
                return _UNCONFIRMED
            case _:
                return f"{'would be ' * dry_run}{_CLOSINGS[self.kind]}"


def judge(suspect: Suspect, now: datetime, limits: Limits, steady_in: float = 0.0) -> Finding | None:
    """Return what is the matter with a call that is not finished; None: nothing yet.

    :param suspect: if it is open or claimed, its worker's lease does not run
    :param steady_in: seconds for which the judge's own lease must still be held before that proves anything
    """
    match suspect.attempt.phase:
        case "open" | "claimed":
            return _abandoned(suspect, now, limits, steady_in)
        case "paused:awaiting_approval" if _is_over(suspect, now):
            return Finding("expired", suspect)
        case "paused:requires_client_execution" | "paused:requires_input" if _is_over(suspect, now):
            return Finding("timed_out", suspect)
        case "approved" if _is_over(suspect, now):
            return Finding("expired", suspect)
        case "approved" if _is_old(suspect, now, limits):
            return Finding("unresumed", suspect)
        case None if suspect.status == "executed" and _is_old(suspect, now, limits):
            return Finding("unconfirmed", suspect)
        case _:
            return None


def _abandoned(suspect: Suspect, now: datetime, limits: Limits, steady_in: float) -> Finding:
    # One with a late outcome cannot be claimed any more.
    if suspect.idempotent and not suspect.late:
        left = (takeover_end(suspect.updated_at, suspect.lease_end, limits) - now).total_seconds()
        if left > 0:
            return Finding("resumable", suspect, left)
    return Finding("held", suspect, steady_in) if steady_in > 0 else Finding("orphaned", suspect)


def takeover_end(updated_at: datetime, lease_end: datetime | None, limits: Limits) -> datetime:
    """Return until when an idempotent call whose worker is gone may be taken over.

    :param lease_end: when the worker's lease ended; None: it was given up, and only the call's last event tells when
    """
    ended = updated_at if lease_end is None else max(updated_at, lease_end)
    return ended + timedelta(seconds=limits.resume_within)


def _is_over(suspect: Suspect, now: datetime) -> bool:
    return suspect.expires_at is not None and suspect.expires_at <= now


def _is_old(suspect: Suspect, now: datetime, limits: Limits) -> bool:
    return suspect.updated_at <= now - timedelta(seconds=limits.report_after)
