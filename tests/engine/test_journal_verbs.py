"""The verbs over the log, and what every database must store alike (BEHAVIOUR 6, CASES JOURNAL)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from msgspec.structs import replace

from engine import CallContext
from engine.journal import Journal
from engine.outcomes import failed
from events import (
    Confirmed,
    Denied,
    EventLog,
    Executed,
    Failed,
    LateOutcome,
    LogUnavailable,
    Paused,
    Proposed,
    ToolEvent,
    VersionConflict,
)
from projections import AttemptRow, verify
from projections.rows import read_attempt
from tests.engine.staging import (
    call,
    staged,
)
from tests.events.appends import follow, proposed
from tests.logs import opened

__all__ = ()

pytestmark = pytest.mark.anyio


class Desk:
    """A journal over a log, and what it was told of."""

    def __init__(self, log: EventLog) -> None:
        self.log = log
        self.appended: list[ToolEvent] = []
        self.journal = Journal(log, self.appended.append)

    async def row(self, first: Proposed) -> AttemptRow:
        row = await read_attempt(self.log, first.key, first.user_id)
        assert row is not None
        return row

    async def kinds(self, first: Proposed) -> list[type[ToolEvent]]:
        return [type(record.event) async for record in self.log.read_stream(first.key, user_id=first.user_id)]


@asynccontextmanager
async def desk_at(url: str) -> AsyncIterator[Desk]:
    async with opened(url) as log:
        desk = Desk(log)
        yield desk
        report = await verify(log)
        assert report.ok, report.problems


async def test_record_proposed_says_who_made_the_row(journal_url: str) -> None:
    async with desk_at(journal_url) as desk:
        mine, theirs = proposed("c"), proposed("c")
        assert await desk.journal.record_proposed(mine)
        assert not await desk.journal.record_proposed(theirs)
        assert await desk.journal.record_proposed(mine), "said again after a lost answer, it is still mine"
        assert await desk.journal.version(mine) == 1
        assert await desk.journal.version(theirs) is None
        assert await desk.journal.version(proposed("other")) is None


async def test_many_at_once_make_one_row(journal_url: str) -> None:
    async with desk_at(journal_url) as desk:
        made: list[bool] = []

        async def make() -> None:
            made.append(await desk.journal.record_proposed(proposed("c")))

        async with anyio.create_task_group() as tasks:
            for _ in range(16):
                tasks.start_soon(make)
        assert sorted(made) == [False] * 15 + [True]


async def test_behaviour_108_what_has_ended_stays_as_it_is(journal_url: str) -> None:
    async with desk_at(journal_url) as desk:
        done, broken, loose = proposed("done"), proposed("broken"), proposed("loose", message_id=None)
        for first in (done, broken, loose):
            await desk.journal.record_proposed(first)
        assert await desk.journal.mark_executed(done, follow(Executed, done, result=1))
        assert await desk.journal.mark_failed(broken, failed(broken, "exception", "boom"))
        assert await desk.journal.mark_executed(loose, follow(Executed, loose, result=2))
        before = [await desk.row(first) for first in (done, broken, loose)]
        assert [row.status for row in before] == ["executed", "failed", "confirmed"]
        for first in (done, loose):
            for version in (1, 2, 3):
                assert not await desk.journal.mark_failed(first, failed(first, "exception", "late"), version)
        for version in (1, 2):
            assert not await desk.journal.mark_executed(broken, follow(Executed, broken, result=3), version)
        assert [await desk.row(first) for first in (done, broken, loose)] == before


async def test_a_paused_call_cannot_be_marked_executed(journal_url: str) -> None:
    async with desk_at(journal_url) as desk:
        first = proposed("c")
        await desk.journal.open(first, follow(Paused, first, pause_type="awaiting_approval", reason="ask"))
        assert not await desk.journal.mark_executed(first, follow(Executed, first), 2)
        assert not await desk.journal.mark_failed(first, failed(first, "cancelled", "no"), 2)
        assert (await desk.row(first)).gate == "paused"


async def test_other_tenants_mark_nothing(journal_url: str) -> None:
    async with desk_at(journal_url) as desk:
        first = proposed("c")
        await desk.journal.record_proposed(first)
        for tenant in (None, "", "U", "v"):
            theirs = replace(first, user_id=tenant)
            assert not await desk.journal.mark_executed(theirs, follow(Executed, theirs))
            assert not await desk.journal.mark_failed(theirs, failed(theirs, "exception", "boom"))
            assert await desk.journal.version(theirs) is None
        assert (await desk.row(first)).status == "proposed"


async def test_upsert_writes_both_at_once_marked_late(journal_url: str) -> None:
    async with desk_at(journal_url) as desk:
        for message, kinds in (("m", [Proposed, Executed]), (None, [Proposed, Executed, Confirmed])):
            first = proposed("c", message_id=message)
            executed = follow(Executed, first, result="r")
            assert await desk.journal.upsert_executed(first, executed)
            assert await desk.kinds(first) == kinds
            row = await desk.row(first)
            assert (row.status, row.late, row.result) == ("executed" if message else "confirmed", True, "r")
            assert await desk.journal.upsert_executed(first, executed), "again after a lost answer: the same"
            assert len(await desk.kinds(first)) == len(kinds)


async def test_upsert_upgrades_only_its_own_open_row(journal_url: str) -> None:
    async with desk_at(journal_url) as desk:
        mine = proposed("mine")
        await desk.journal.record_proposed(mine)
        assert await desk.journal.upsert_executed(mine, follow(Executed, mine, result="r"))
        row = await desk.row(mine)
        assert (row.status, row.late, row.result) == ("executed", True, "r")

        theirs, rival = proposed("theirs"), proposed("theirs")
        await desk.journal.record_proposed(theirs)
        assert not await desk.journal.upsert_executed(rival, follow(Executed, rival, result="r"))
        assert (await desk.row(theirs)).status == "proposed"

        ended = proposed("ended")
        await desk.journal.record_proposed(ended)
        await desk.journal.mark_failed(ended, failed(ended, "orphaned", "gone"))
        assert not await desk.journal.upsert_executed(ended, follow(Executed, ended, result="r"))
        waits = proposed("waits")
        await desk.journal.open(waits, follow(Paused, waits, pause_type="awaiting_approval", reason="ask"))
        assert not await desk.journal.upsert_executed(waits, follow(Executed, waits, result="r"))
        assert (await desk.row(waits)).gate == "paused"


async def test_a_late_outcome_is_kept_once_and_changes_no_status(journal_url: str) -> None:
    async with desk_at(journal_url) as desk:
        first = proposed("c")
        await desk.journal.record_proposed(first)
        await desk.journal.mark_failed(first, failed(first, "orphaned", "gone"))
        late = follow(Executed, first, result="after all")
        for _ in range(2):
            await desk.journal.keep_late(first, late)
        assert await desk.kinds(first) == [Proposed, Failed, LateOutcome]
        row = await desk.row(first)
        assert (row.status, row.late) == ("failed", True)
        # Without a stream of its own there is nothing to keep it in.
        await desk.journal.keep_late(proposed("c"), late)
        assert len(await desk.kinds(first)) == 3


async def test_closing_tells_who_was_faster(journal_url: str) -> None:
    async with desk_at(journal_url) as desk:
        first = proposed("c")
        await desk.journal.record_proposed(first)
        closed = await desk.journal.close(first, follow(Denied, first, reason="headless", message="no"))
        assert closed.position == 2
        with pytest.raises(VersionConflict):
            await desk.journal.close(first, follow(Executed, first))
        assert desk.appended == [replace(first, position=1), closed]


async def test_an_orphan_is_closed_only_without_its_worker(journal_url: str) -> None:
    from engine.lease import Lease

    async with desk_at(journal_url) as desk:
        first = proposed("c")
        await desk.journal.record_proposed(first)
        lease = Lease(desk.log.store, first.worker, 30)
        await lease.begin()
        gone = failed(first, "orphaned", "gone")
        with pytest.raises(Exception, match="live worker"):
            await desk.journal.orphan(first, gone, 1, first.worker)
        await lease.end()
        assert (await desk.journal.orphan(first, gone, 1, first.worker)).kind == "orphaned"


async def test_a_journal_that_is_away_stops_the_call(sqlite_url: str) -> None:
    ran: list[int] = []

    async def count() -> None:
        ran.append(1)

    context = CallContext(user_id="u", message_id="m")
    async with staged(sqlite_url, count) as engine:
        await engine.log.store.aclose()
        stream = engine.execute(call(), context)
        with pytest.raises(LogUnavailable):
            await anext(stream)
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        assert ran == []
