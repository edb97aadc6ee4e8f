"""Disposable read models, each fed by its own checkpoint (DESIGN 5): the protocol, and what runs one.

The state table has a protocol of its own (``events.store.InlineProjection``): it moves inside the append.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from events.log import EventLog
from events.types import Recorded, ToolEvent

__all__ = ("Projection", "ProjectionStatistics", "reset_projection", "run_projection")


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


async def run_projection(
    log: EventLog,
    projection: Projection,
    *,
    follow: bool = False,
    observe: Callable[[ProjectionStatistics], None] | None = None,
) -> ProjectionStatistics:
    """Take in the events behind the read model's checkpoint, in order, each exactly once, whatever crashes.

    An event that it cannot take in (it raises, the database refuses its values, the text is damaged) is parked in
    ``projection_parked`` with the reason, and the run goes on. Two runs of one read model at a time do each event once.

    :param follow: never return, but wait for what is appended
    :param observe: called after each transaction
    :raises LogUnavailable: if the database failed; nothing is half done
    """
    from projections.running import Run

    return await Run(log, projection, observe).run(follow=follow)


async def reset_projection(log: EventLog, projection: Projection) -> None:
    """Empty the read model, its checkpoint and what it parked: the next run makes it anew.

    :raises LogUnavailable: if the database failed; nothing is half done
    """
    from projections.running import forget

    await log.store.write([*projection.reset(), *forget(projection.name)])
