"""What was spooled goes to the log when that is back: in order, once, and honest about what happened meanwhile."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from msgspec.structs import replace
from sqlalchemy import delete

from engine import CallContext, Engine, Rule, Settings, Tool
from engine.parked import parked_calls
from engine.settings import Limits
from engine.spool import SpoolStatistics
from events import Confirmed, Denied, Executed, Failed, LateOutcome, LogUnavailable, Paused, Proposed, Refused
from events.schema import leases
from events.types import StreamEvent
from tests.engine.losing import (
    LosableJournal,
    drained,
    in_log,
    losable_sqlite,
    on_losable,
    reader,
    spool_files,
    spooling,
)
from tests.engine.staging import CONTEXT, bare, call, events_of, outcome_of, proved, row_of, stream_of
from tests.engine.watching import NAMED, Held, Watched

__all__ = ()

pytestmark = pytest.mark.anyio

SHORT = Limits(cleanup=0.2)


def watcher() -> tuple[Watched, type[Tool]]:
    watched = Watched()
    return watched, reader(watched.works, parameters=NAMED)


def elsewhere(settings: Settings) -> Settings:
    """Return the settings of another machine: it has a spool of its own."""
    assert settings.spool is not None
    return replace(settings, spool=settings.spool / "elsewhere")


@asynccontextmanager
async def left_behind(journal: LosableJournal, settings: Settings, tool: type[Tool]) -> AsyncIterator[Engine]:
    """Run an engine whose journal is away from its first call to its end: what that leaves is in the spool then."""
    async with on_losable(journal, replace(settings, limits=SHORT), tool) as engine:
        journal.go_away()
        yield engine
    journal.come_back()


async def test_in_order_and_once(losable: LosableJournal, tmp_path: Path) -> None:
    _, tool = watcher()
    async with on_losable(losable, spooling(tmp_path), tool) as engine:
        losable.go_away()
        seen: list[StreamEvent] = []
        for number in range(20):
            seen += await events_of(engine, call({"name": f"n{number}"}, call_id=f"c{number}"))
        losable.come_back()
        await drained(engine)
        records = await in_log(engine)
        assert [replace(record.event, position=None) for record in records] == seen
        assert [record.position for record in records] == sorted({record.position for record in records})
        # Nothing is done of its own account any more, and a new call is as any other.
        fresh = await events_of(engine, call({"name": "fresh"}, call_id="fresh"))
        assert [event.late for event in fresh] == [False, False]
        await proved(engine)


async def test_a_turn_side_by_side(losable: LosableJournal, tmp_path: Path) -> None:
    watched, tool = watcher()
    async with on_losable(losable, spooling(tmp_path), tool) as engine:
        losable.go_away()
        calls = [call({"name": f"n{number}"}, call_id=f"c{number}") for number in range(12)]
        async with engine.execute_all(calls, CONTEXT) as events:
            seen = [event async for event in events]
        assert [event.key for event in seen[:12]] == [f"m:c{number}" for number in range(12)]
        assert len(seen) == 24
        assert all(event.late and event.position is None for event in seen)
        losable.come_back()
        await drained(engine)
        found = {event.id: event for event in (record.event for record in await in_log(engine))}
        assert [replace(found[event.id], position=None) for event in seen] == seen
        assert sorted(watched.called) == sorted(f"n{number}" for number in range(12))
        await proved(engine)


async def test_behaviour_111_what_a_dead_engine_left_is_written_by_the_next(
    losable: LosableJournal, tmp_path: Path
) -> None:
    watched, tool = watcher()
    settings = spooling(tmp_path)
    async with left_behind(losable, settings, tool) as engine:
        seen = await events_of(engine, call({"name": "a"}))
        seen += await events_of(engine, call({"name": "b"}), bare)
    assert len(spool_files(settings)) == 1
    async with on_losable(losable, settings, tool) as engine:
        assert spool_files(settings) == []
        written = [record.event for record in await in_log(engine)]
        assert [replace(event, position=None) for event in written[:4]] == seen
        assert isinstance(written[4], Confirmed)
        assert await events_of(engine, call({"name": "a"})) == written[:2]
        assert watched.called == ["a", "b"]
        await proved(engine)


async def test_a_key_that_another_call_has_taken_is_left_to_it(losable: LosableJournal, tmp_path: Path) -> None:
    watched, tool = watcher()
    settings = spooling(tmp_path)
    async with left_behind(losable, settings, tool) as engine:
        proposed, executed = await events_of(engine, call({"name": "late"}))
        assert proposed.key == "m:c1"
        assert isinstance(executed, Executed)
    async with on_losable(losable, elsewhere(settings), tool) as engine:
        for name in ("first", "second"):
            await events_of(engine, call({"name": name}))
    async with on_losable(losable, settings, tool) as engine:
        keys = [record.key for record in await in_log(engine)]
        assert keys == ["m:c1", "m:c1", "m:c1#2", "m:c1#2", "m:c1#3", "m:c1#3"]
        assert [event.id for event in await stream_of(engine, "m:c1#3")] == [proposed.id, executed.id]
        assert (await row_of(engine, "m:c1#3")).result == "late"
        assert await events_of(engine, call({"name": "late"})) == await stream_of(engine, "m:c1#3")
        assert watched.called == ["late", "first", "second"]
        await proved(engine)


async def test_a_bare_key_that_is_taken_gets_the_next_ordinal(losable: LosableJournal, tmp_path: Path) -> None:
    _, tool = watcher()
    settings = spooling(tmp_path)
    async with left_behind(losable, settings, tool) as engine:
        await events_of(engine, call({"name": "n"}), bare)
    async with on_losable(losable, elsewhere(settings), tool) as engine:
        await events_of(engine, call({"name": "n"}), bare)
    async with on_losable(losable, settings, tool) as engine:
        assert {record.key for record in await in_log(engine)} == {"c1", "c1#2"}
        assert (await row_of(engine, "c1#2")).status == "confirmed"
        await proved(engine)


async def test_what_ran_elsewhere_too_keeps_its_outcome_as_late(losable: LosableJournal, tmp_path: Path) -> None:
    watched, tool = watcher()
    settings = spooling(tmp_path)
    async with left_behind(losable, settings, tool) as engine:
        _, spooled = await events_of(engine, call({"name": "n"}))
    async with on_losable(losable, elsewhere(settings), tool) as engine:
        there = await events_of(engine, call({"name": "n"}))
    async with on_losable(losable, settings, tool) as engine:
        *recorded, late = await stream_of(engine)
        assert recorded == there
        assert isinstance(late, LateOutcome)
        assert late.outcome == spooled
        row = await row_of(engine)
        assert (row.status, row.late) == ("executed", True)
        assert watched.called == ["n", "n"]
        await proved(engine)


async def test_a_call_that_waits_elsewhere_is_not_let_run_a_second_time(
    losable: LosableJournal, tmp_path: Path
) -> None:
    watched, tool = watcher()
    settings = spooling(tmp_path)
    async with left_behind(losable, settings, tool) as engine:
        await events_of(engine, call({"name": "n"}))
    async with on_losable(losable, elsewhere(settings), tool) as engine:
        await engine.rules.add(Rule(verdict="ask", id="look"), user_id="u")
        assert isinstance(await outcome_of(engine, call({"name": "n"})), Paused)
    async with on_losable(losable, settings, tool) as engine:
        assert (await row_of(engine)).late
        with pytest.raises(Refused):
            await engine.decide("m:c1", approve=True, by="alice", user_id="u")
        assert watched.called == ["n"]
        await proved(engine)


async def test_an_outcome_whose_call_was_closed_meanwhile_is_late(losable: LosableJournal, tmp_path: Path) -> None:
    settings = spooling(tmp_path)

    async def runs() -> str:
        losable.go_away()
        return "done"

    tool = reader(runs)
    async with on_losable(losable, replace(settings, limits=SHORT), tool) as engine:
        proposed, executed = await events_of(engine, call())
        assert isinstance(proposed, Proposed)
        assert proposed.position is not None
    losable.come_back()
    async with on_losable(losable, elsewhere(settings), tool) as engine:
        await engine.log.store.write([delete(leases).where(leases.c.worker == proposed.worker)])
        closed = await outcome_of(engine, call())
        assert isinstance(closed, Failed)
        assert closed.kind == "orphaned"
    async with on_losable(losable, settings, tool) as engine:
        late = (await stream_of(engine))[-1]
        assert isinstance(late, LateOutcome)
        assert late.outcome == executed
        assert ((await row_of(engine)).status, (await row_of(engine)).late) == ("failed", True)
        await proved(engine)


async def test_what_the_log_refuses_for_good_is_parked_and_holds_up_nothing(
    sqlite_url: str, sqlite_template: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The file was restored from a backup that is older than the proposal."""
    settings = spooling(tmp_path)
    with losable_sqlite(sqlite_url) as journal:

        async def runs() -> str:
            if not journal_away:
                journal.go_away()
                journal_away.append(True)
            return "done"

        journal_away: list[bool] = []
        tool = reader(runs)
        async with on_losable(journal, replace(settings, limits=SHORT), tool) as engine:
            await events_of(engine, call(call_id="lost"))
            await events_of(engine, call(call_id="kept"))
        journal.come_back()
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()
    shutil.copyfile(sqlite_template, path)
    with losable_sqlite(sqlite_url) as journal:
        async with on_losable(journal, settings, tool) as engine:
            assert [record.key for record in await in_log(engine)] == ["m:kept", "m:kept"]
            assert engine.statistics().spool == SpoolStatistics(depth=0, oldest=0.0, parked=1)
            assert "put aside" in caplog.text
            (file,) = spool_files(settings)
            (parked,) = parked_calls(file.parent)
            assert parked.proposed.key == "m:lost"
            assert isinstance(parked.outcome, Executed)
            assert "not in the log" in parked.reason
            await proved(engine)
        async with on_losable(journal, settings, tool) as engine:
            assert engine.statistics().spool.parked == 1


async def test_a_call_that_runs_is_in_the_log_before_its_outcome(losable: LosableJournal, tmp_path: Path) -> None:
    slow, seen = Held(), list[StreamEvent]()
    async with on_losable(losable, spooling(tmp_path), reader(slow.work)) as engine:
        losable.go_away()

        async def consume() -> None:
            seen.extend(await events_of(engine, call()))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(consume)
            while not slow.runs:
                await checkpoint()
            losable.come_back()
            await drained(engine)
            row = await row_of(engine)
            assert (row.status, row.gate, row.late) == ("proposed", "open", True)
            repeated = await outcome_of(engine, call())
            assert isinstance(repeated, Denied)
            assert repeated.reason == "duplicate"
            slow.release.set()
        await drained(engine)
        assert [replace(event, position=None) for event in await stream_of(engine)] == seen
        assert slow.runs == 1
        await proved(engine)


async def test_a_denial_at_the_moment_of_the_call_is_spooled(losable: LosableJournal, tmp_path: Path) -> None:
    """Its tool is asked once its proposal is in the log; what would wait then is closed instead."""

    def previews(self: Tool, action_name: str, arguments: dict[str, Any]) -> tuple[bool, bool]:
        losable.go_away()
        return True, True

    watched = Watched()
    tool = reader(watched.works, parameters=NAMED, preview_decision=previews, live_gate="replaces")
    headless = CallContext(user_id="u", message_id="h", headless=True)
    async with on_losable(losable, spooling(tmp_path), tool) as engine:
        proposed, denied = await events_of(engine, call({"name": "n"}), headless)
        assert isinstance(denied, Denied)
        assert (proposed.late, denied.reason, denied.late, denied.position) == (False, "denylist", True, None)
        losable.come_back()
        await drained(engine)
        assert (await row_of(engine, "h:c1")).status == "denied"
        with pytest.raises(LogUnavailable):
            await events_of(engine, call({"name": "n"}))
        losable.come_back()
        await drained(engine)
        _, failed = await stream_of(engine)
        assert isinstance(failed, Failed)
        assert "was not run" in failed.message
        assert watched.called == []
        await proved(engine)


async def test_one_that_was_left_is_closed(losable: LosableJournal, tmp_path: Path) -> None:
    watched, tool = watcher()
    async with on_losable(losable, spooling(tmp_path), tool) as engine:
        losable.go_away()
        stream = engine.execute(call({"name": "n"}), CONTEXT)
        proposed = await anext(stream)
        await stream.aclose()
        losable.come_back()
        await drained(engine)
        first, failed = await stream_of(engine)
        assert replace(first, position=None) == proposed
        assert isinstance(failed, Failed)
        assert (failed.kind, failed.late) == ("cancelled", True)
        assert "was not run" in failed.message
        assert watched.called == []
        await proved(engine)


async def test_what_is_asked_of_a_call_waits_for_its_spool(losable: LosableJournal, tmp_path: Path) -> None:
    _, tool = watcher()
    async with on_losable(losable, spooling(tmp_path, limits=SHORT), tool) as engine:
        await events_of(engine, call({"name": "before"}, call_id="c0"))
        losable.go_away()
        await events_of(engine, call({"name": "n"}))
        for ask in (
            lambda: engine.attempt("m:c1", user_id="u"),
            lambda: engine.tool_results("m", user_id="u"),
            lambda: engine.confirm("m", user_id="u"),
            lambda: engine.decide("m:c1", approve=True, by="alice", user_id="u"),
        ):
            with pytest.raises(LogUnavailable):
                await ask()
        if losable.readable:
            assert (await row_of(engine, "m:c0")).status == "executed"
            assert await engine.attempt("m:c1", user_id="somebody else") is None
        losable.come_back()
        results = await engine.tool_results("m", user_id="u")
        assert [message["content"] for message in results] == ["before", "n"]
        assert await engine.confirm("m", user_id="u") == 2
        await proved(engine)


async def test_a_clean_end_drains(losable: LosableJournal, tmp_path: Path) -> None:
    _, tool = watcher()
    settings = spooling(tmp_path)
    async with on_losable(losable, settings, tool) as engine:
        losable.go_away()
        await events_of(engine, call({"name": "n"}))
        losable.come_back()
    assert spool_files(settings) == []
    async with on_losable(losable, elsewhere(settings), tool) as engine:
        assert (await row_of(engine)).status == "executed"
