"""What runs a read model, and what lets it begin anew."""

from __future__ import annotations

from collections.abc import Callable

from events.log import EventLog
from projections.projection import Projection, ProjectionStatistics

__all__ = ("reset_projection", "run_projection")


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
    from projections.intake import Run

    return await Run(log, projection, observe).run(follow=follow)


async def reset_projection(log: EventLog, projection: Projection) -> None:
    """Empty the read model, its checkpoint and what it parked: the next run makes it anew.

    :raises LogUnavailable: if the database failed; nothing is half done
    """
    from projections.intake import forget

    await log.store.write([*projection.reset(), *forget(projection.name)])
