"""Writing to the log what was spooled: idempotent by the ids of its events, and honest where the log has moved on."""

from __future__ import annotations

from msgspec.structs import replace

from engine.journal import Journal, with_confirmation
from engine.outcomes import orphaned
from engine.recorded import recorded_opening
from engine.spool_entry import same_call
from engine.spool_folder import Kept
from events.errors import Conflict, Refused, VersionConflict
from events.keys import duplicate_key, journal_key, ordinal_key
from events.log import EventLog
from events.types import Denied, Proposed, ToolEvent

__all__ = ("write_late",)


async def write_late(log: EventLog, journal: Journal, kept: Kept) -> bool:
    """Write one call's events to the log; False: they cannot be yet, for the call still runs.

    What had been written before is recognised. Where another call has taken the key, the next ordinal is used; where
    the same call stands there, or the attempt was closed meanwhile, the outcome becomes its LateOutcome.

    :raises Refused: if the database cannot store it, or its proposal is not in the log
    :raises Conflict: if the log refuses it
    :raises LogUnavailable: if the log cannot be written
    """
    if kept.version:
        return await _end(log, journal, kept)
    proposed, number = replace(kept.proposed, late=True), 1
    while True:
        try:
            await journal.open(proposed, *_following(kept, proposed))
        except VersionConflict:
            opening = await recorded_opening(log, proposed.key, proposed.user_id)
        else:
            return True
        if opening is not None and opening.id == proposed.id:
            return await _end(log, journal, replace(kept, version=1))
        if opening is not None and _repeats(kept, opening):
            return await _end_of_same(journal, kept, opening)
        number += 1
        proposed = replace(proposed, key=_next_key(kept, number))


def _following(kept: Kept, proposed: Proposed) -> list[ToolEvent]:
    if kept.outcome is None:
        return []
    return with_confirmation(proposed, replace(kept.outcome, key=proposed.key))


def _repeats(kept: Kept, opening: Proposed) -> bool:
    """Tell whether the call that has the key is the same call; a bare id is no proof of that."""
    bare = opening.message_id is None and opening.run_id is None
    return not bare and not _is_duplicate(kept) and same_call(opening, kept.proposed)


def _is_duplicate(kept: Kept) -> bool:
    return isinstance(kept.outcome, Denied) and kept.outcome.reason == "duplicate"


def _next_key(kept: Kept, number: int) -> str:
    """Return the key that is tried as the ``number``-th, its own being the first."""
    proposed = kept.proposed
    if _is_duplicate(kept):
        stem, _, first = proposed.key.rpartition("~d")
        return duplicate_key(stem, int(first) + number - 1)
    base = journal_key(proposed.call_id, proposed.message_id, proposed.run_id)
    ordinal = int(proposed.key.removeprefix(base).removeprefix("#") or 1)
    return ordinal_key(base, ordinal + number - 1)


async def _end_of_same(journal: Journal, kept: Kept, opening: Proposed) -> bool:
    """Keep the outcome of a call that also ran elsewhere."""
    outcome = kept.outcome
    if outcome is None:
        if kept.holder != "gone":
            return False
        outcome = orphaned(kept.proposed, late=True)
    await journal.keep_late(opening, replace(outcome, key=opening.key))
    return True


async def _end(log: EventLog, journal: Journal, kept: Kept) -> bool:
    """Write what followed a proposal that is in the log."""
    if kept.outcome is None:
        return True
    proposed, number = kept.proposed, 1
    while (
        opening := await recorded_opening(log, proposed.key, proposed.user_id)
    ) is not None and opening.id != proposed.id:
        number += 1
        proposed = replace(proposed, key=_next_key(kept, number))
    if opening is None:
        if kept.told:
            raise Refused(f"the proposal of call {kept.proposed.key!r} is not in the log")
        return True
    outcome = replace(kept.outcome, key=proposed.key)
    if kept.claim is not None and await journal.version(proposed, kept.claim) is None:
        # The claim never came to be, or the call has moved on: what another worker claimed is that worker's to end.
        return True
    try:
        await journal.close(proposed, outcome, kept.version)
    except Conflict:
        if kept.told:
            await journal.keep_late(proposed, outcome)
    return True
