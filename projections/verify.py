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
    processes: int | None = None,
) -> Report:
    """Check the whole log against its seals, its own rules and ``tool_call_attempts``; memory stays flat.

    Found are: rows without stream, streams without row, rows that differ from their fold in any column, gaps in
    versions, steps that the lifecycle forbids, damaged text, missing long results, and broken seals. Writes nothing;
    appends may go on meanwhile and cause no false alarm. Cancelled, it can begin again where ``checkpoint`` was called
    last.

    :param progress: called after each page with (done, total), in positions looked at; both passes count
    :param resume: begin there
    :param checkpoint: called after each page with where to resume
    :param processes: 1: only this one; 2: a second one does half of the work, where one can be had; None: that where
        the log is long and there is a processor for it
    :raises LogUnavailable: if the database cannot be read
    """
    from projections.verification import Verification

    state = resume or Resume(head=await log.head())
    return await Verification(log, state, progress or _ignore, checkpoint or _ignore).run(processes)


def _ignore(*_: object) -> None:
    """Progress that nobody wants."""
