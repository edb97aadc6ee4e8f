"""How long a call waits: the moment after which a pause is over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from engine.gate import Pause
from engine.settings import Limits
from events.types import PauseType

__all__ = ("deadline_of", "is_past")


def deadline_of(pause: Pause | PauseType, limits: Limits) -> datetime | None:
    """Return when a pause that begins now is over, in UTC; None: never."""
    pause_type = pause.pause_type if isinstance(pause, Pause) else pause
    seconds = limits.decide_within if pause_type == "awaiting_approval" else limits.answer_within
    return None if seconds is None else datetime.now(UTC) + timedelta(seconds=seconds)


def is_past(moment: datetime | None) -> bool:
    """Tell whether a deadline, if there is one, has come."""
    return moment is not None and datetime.now(UTC) >= moment
