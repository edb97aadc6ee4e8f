"""A log with many events in it, made through the product's own appends."""

from __future__ import annotations

from benchmarks.workload import USER, make_pairs
from engine.migration import CHAINS
from events.log import Append
from events.opening import open_log
from events.seal import seal
from events.types import ToolEvent
from projections.attempts import AttemptsProjection

__all__ = ("fill",)

_STREAMS = 250


async def fill(url: str, count: int) -> None:
    """Append ``count`` events, two a call, and seal the log."""
    log = await open_log(url, AttemptsProjection(), CHAINS)
    try:
        for first in range(0, count // 2, _STREAMS):
            pairs = make_pairs(min(_STREAMS, count // 2 - first))
            await log.append_many([_append(pair.key, pair.proposed, 0) for pair in pairs])
            await log.append_many([_append(pair.key, pair.executed, 1) for pair in pairs])
        await seal(log)
    finally:
        await log.aclose()


def _append(key: str, event: ToolEvent, version: int) -> Append:
    return Append(key=key, events=(event,), expected_version=version, user_id=USER)
