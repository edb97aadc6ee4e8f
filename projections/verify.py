"""``verify``: folds every stream again and compares it with the live table; checks the seals (DESIGN 5)."""

from __future__ import annotations

from collections.abc import Callable

from events.log import EventLog
from projections.report import Report, Resume

__all__ = ("verify",)


async def verify(
    log: EventLog,
    *,
    progress: Callable[[int, int], None] | None = None,
    resume: Resume | None = None,
    checkpoint: Callable[[Resume], None] | None = None,
) -> Report:
    """Check the whole log against its seals, its own rules and ``tool_call_attempts``; memory stays flat.

    Found are: rows without stream, streams without row, rows that differ from their fold in any column, gaps in
    versions, steps that the lifecycle forbids, damaged text, missing long results, and broken seals. Writes nothing;
    appends may go on meanwhile and cause no false alarm. Cancelled, it can begin again where ``checkpoint`` was called
    last.

    :param progress: called after each page with (done, total), in positions looked at; both passes count
    :param resume: begin there
    :param checkpoint: called after each page with where to resume
    :raises LogUnavailable: if the database cannot be read
    """
    from projections.comparison import Comparison

    state = resume or Resume(head=await log.head())
    run = Comparison(log, state, progress or _ignore, checkpoint or _ignore)
    await run.check_seals()
    await run.compare()
    return await run.report()


def _ignore(*_: object) -> None:
    """Progress that nobody wants."""
