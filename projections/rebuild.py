"""``rebuild``: replays the log into a fresh ``tool_call_attempts`` and swaps it in (DESIGN 5)."""

from __future__ import annotations

from collections.abc import Callable

from events.log import EventLog
from projections.report import Report

__all__ = ("rebuild",)


async def rebuild(
    log: EventLog, *, progress: Callable[[int, int], None] | None = None, processes: int | None = None
) -> Report:
    """Make ``tool_call_attempts`` anew from the log alone; appends may go on meanwhile.

    The rows are made beside the live table, which stays untouched until one short transaction brings what changed
    since and swaps the tables; appends wait for that one. Interrupted, killed too, it goes on where it was when called
    again. A log that cannot be folded is reported, and nothing is swapped. Calls with events that this release does not
    know keep their row.

    :param progress: called after each page with (done, total), in positions
    :param processes: 1: only this one; 2: a second one folds while this one writes, where one can be had; None: that
        where the log is long, on SQLite, and there is a processor for it
    :raises Conflict: if another rebuild finished first
    :raises SchemaMismatch: if the table has columns that this release does not know
    :raises LogUnavailable: if the database failed, or the table was in use for too long
    """
    from projections.replay import Replay

    run = Replay(log, progress or _ignore)
    await run.begin()
    await run.fill(processes)
    if not run.problems:
        await run.finish()
    if run.problems:
        await run.abandon()
    return run.report()


def _ignore(*_: object) -> None:
    """Progress that nobody wants."""
