"""What is measured of the whole journal each time it is reconciled: what is stuck, what waits, who lags behind."""

from __future__ import annotations

import logging
from typing import Final

from sqlalchemy import select

from engine.runtime import Runtime
from engine.stuck import ReconcileReport
from engine.suspects import waiting_for_approval
from events.errors import LogUnavailable
from events.schema import checkpoints

__all__ = ("measure",)

_log = logging.getLogger("calljournal.reconcile")

_READERS: Final = 50
"""Subscriptions that are measured: a metric must not grow with whatever names there are."""

_FARTHEST_BEHIND: Final = (
    select(checkpoints.c.name, checkpoints.c.position)
    .where(checkpoints.c.name.not_like("rebuild:%"))
    .order_by(checkpoints.c.position)
    .limit(_READERS)
)


async def measure(runtime: Runtime, report: ReconcileReport) -> None:
    """Hand the metrics on, if anybody listens and it was no dry run; what cannot be read now is left out."""
    telemetry, store = runtime.telemetry, runtime.log.store
    if report.dry_run or not telemetry.heard:
        return
    telemetry.stuck(report.counts)
    try:
        telemetry.pending(await waiting_for_approval(store))
        readers = await store.read(_FARTHEST_BEHIND)
        head = await runtime.log.head()
    except LogUnavailable as error:
        _log.warning("the journal could not be measured: %s", error)
        return
    for name, position in readers:
        telemetry.lag(name, max(0, head - position))
