"""Disposable read models, each fed by its own checkpoint (DESIGN 5): the protocol.

The state table has a protocol of its own (``events.store.InlineProjection``): it moves inside the append.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from events.types import Recorded, ToolEvent

__all__ = ("Projection", "ProjectionStatistics")


class Projection(Protocol):
    """A read model: tables of its own, derived from the log alone, that may be thrown away and made anew.

    It appends nothing. ``statements`` are SQLAlchemy Core statements; they need not be idempotent, for the checkpoint
    moves in the transaction that runs them, so that each event counts exactly once.
    """

    @property
    def name(self) -> str:
        """The checkpoint's name; two read models never share one."""
        ...

    def statements(self, recorded: Recorded[ToolEvent]) -> Sequence[Any]:
        """Return what the event does to the tables; nothing: it does not matter here. Pure; may raise: it is parked."""
        ...

    def reset(self) -> Sequence[Any]:
        """Return statements that empty the tables."""
        ...


class ProjectionStatistics(msgspec.Struct, frozen=True):
    """What a run has done: the last position taken in, the events taken in, and those parked."""

    position: int = 0
    events: int = 0
    parked: int = 0
