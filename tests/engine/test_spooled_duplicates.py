"""The same call again while the journal is away: nothing runs twice on one machine (DESIGN 8, invariant 5)."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import anyio
import pytest
from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from engine import CallContext
from engine.spool_file import FolderLock
from events import Denied, Executed, LogUnavailable
from events.types import StreamEvent
from tests.engine.cancelling import CANCELLERS, cut_at
from tests.engine.losing import LosableJournal, drained, in_log, on_losable, reader, spool_files, spooling
from tests.engine.staging import CONTEXT, bare, call, events_of, outcome_of, proved, row_of, stream_of
from tests.engine.test_draining import SHORT, watcher
from tests.engine.watching import NAMED, Held, Watched

__all__ = ()

pytestmark = pytest.mark.anyio


async def test_one_that_has_ended_is_told_from_the_spool(losable: LosableJournal, tmp_path: Path) -> None:
    watched, tool = watcher()
    async with on_losable(losable, spooling(tmp_path), tool) as engine:
        losable.go_away()
        seen = await events_of(engine, call({"name": "n"}))
        assert await events_of(engine, call({"name": "n"})) == seen
        other = await events_of(engine, call({"name": "other"}))
        assert {event.key for event in other} == {"m:c1#2"}
        assert await events_of(engine, call({"name": "other"})) == other
        assert watched.called == ["n", "other"]
        losable.come_back()
        # Whether it is in the log by now or not, it is the same.
        again = await events_of(engine, call({"name": "n"}))
        assert [replace(event, position=None) for event in again] == seen
        await drained(engine)
        assert watched.called == ["n", "other"]
        assert len(await in_log(engine)) == 4
        await proved(engine)


async def test_one_that_runs_is_denied(losable: LosableJournal, tmp_path: Path) -> None:
    """Whether its own proposal is in the log or in the spool."""
    for before in (True, False):
        slow, tell = Held(), CallContext(user_id="u", message_id=f"m{before}")
        async with on_losable(losable, spooling(tmp_path), reader(slow.work)) as engine:
            if not before:
                losable.go_away()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(events_of, engine, call(), tell)
                while not slow.runs:
                    await checkpoint()
                if before:
                    losable.go_away()
                for number in (1, 2):
                    proposed, denied = await events_of(engine, call(), tell)
                    assert isinstance(denied, Denied)
                    assert (denied.reason, denied.late) == ("duplicate", True)
                    assert proposed.key == denied.key == f"m{before}:c1~d{number}"
                slow.release.set()
            losable.come_back()
            await drained(engine)
            assert (await row_of(engine, f"m{before}:c1")).status == "executed"
            assert (await row_of(engine, f"m{before}:c1~d2")).status == "denied"
            assert slow.runs == 1
            await proved(engine)


async def test_refused_repetitions_of_an_earlier_outage_are_counted_on(losable: LosableJournal, tmp_path: Path) -> None:
    slow = Held()
    async with on_losable(losable, spooling(tmp_path), reader(slow.work)) as engine:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(events_of, engine, call(), CONTEXT)
            while not slow.runs:
                await checkpoint()
            for _ in range(2):
                losable.go_away()
                assert isinstance(await outcome_of(engine, call()), Denied)
                losable.come_back()
                await drained(engine)
            assert isinstance(await outcome_of(engine, call()), Denied)
            slow.release.set()
        assert {record.key for record in await in_log(engine)} == {"m:c1", "m:c1~d1", "m:c1~d2", "m:c1~d3"}
        await proved(engine)


async def test_many_at_once_run_once(losable: LosableJournal, tmp_path: Path) -> None:
    watched, tool = watcher()
    async with on_losable(losable, spooling(tmp_path), tool) as engine:
        losable.go_away()
        kinds: list[type] = []

        async def propose() -> None:
            kinds.append(type((await events_of(engine, call({"name": "n"})))[1]))

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(propose)
        assert watched.called == ["n"]
        assert set(kinds) <= {Executed, Denied}
        losable.come_back()
        await drained(engine)
        await proved(engine)


async def test_one_made_before_the_outage_is_not_made_again(losable: LosableJournal, tmp_path: Path) -> None:
    watched, tool = watcher()
    async with on_losable(losable, spooling(tmp_path), tool) as engine:
        seen = await events_of(engine, call({"name": "n"}))
        losable.go_away()
        with pytest.raises(LogUnavailable, match="made before"):
            await events_of(engine, call({"name": "n"}))
        losable.come_back()
        assert await events_of(engine, call({"name": "n"})) == seen
        assert watched.called == ["n"]


async def test_a_bare_id_proves_nothing(losable: LosableJournal, tmp_path: Path) -> None:
    watched, tool = watcher()
    async with on_losable(losable, spooling(tmp_path), tool) as engine:
        await events_of(engine, call({"name": "n"}), bare)
        losable.go_away()
        spooled = [await events_of(engine, call({"name": "n"}), bare) for _ in range(2)]
        assert [events[0].key for events in spooled] == ["c1", "c1#2"]
        losable.come_back()
        await drained(engine)
        assert watched.called == ["n", "n", "n"]
        assert {record.key for record in await in_log(engine)} == {"c1", "c1#2", "c1#3"}
        await proved(engine)


async def test_of_another_engine_on_the_machine(losable: LosableJournal, tmp_path: Path) -> None:
    """Two processes hold their own files: neither takes the other's, and both know what the other has."""
    watched, tool = watcher()
    slow = Held()
    second = reader(slow.work, name="slow", action="slow")
    settings = spooling(tmp_path, limits=SHORT)
    async with on_losable(losable, settings, tool, second) as engine:
        losable_too = on_losable(losable, settings, tool, second)
        async with losable_too as beside, anyio.create_task_group() as tasks:
            losable.go_away()
            seen = await events_of(engine, call({"name": "n"}))
            tasks.start_soon(events_of, engine, call(name="slow", call_id="c2"), CONTEXT)
            while not slow.runs:
                await checkpoint()
            assert await events_of(beside, call({"name": "n"})) == seen
            denied = await outcome_of(beside, call(name="slow", call_id="c2"))
            assert isinstance(denied, Denied)
            other = await events_of(beside, call({"name": "other"}))
            assert {event.key for event in other} == {"m:c1#2"}
            assert len(spool_files(settings)) == 2
            slow.release.set()
        # The one beside is gone: what it held is written by the one that is there.
        losable.come_back()
        await drained(engine)
        with anyio.fail_after(30):
            while spool_files(settings):
                await checkpoint()
        assert watched.called == ["n", "other"]
        assert slow.runs == 1
        assert [event.id for event in await stream_of(engine, "m:c1#2")] == [event.id for event in other]
        await proved(engine)


@pytest.mark.parametrize("canceller", CANCELLERS)
async def test_cancelled_at_every_await(
    losable: LosableJournal, tmp_path: Path, canceller: str, anyio_backend_name: str
) -> None:
    if anyio_backend_name == "trio" and canceller != "scope":
        pytest.skip("tasks are cancelled so on asyncio only")
    watched = Watched()
    seen: dict[int, int] = {}
    async with on_losable(losable, spooling(tmp_path, limits=SHORT), reader(watched.works, parameters=NAMED)) as engine:

        async def work(at: int) -> None:
            seen[at] = 0
            stream = engine.execute(call({"name": f"n{at}"}, call_id=f"c{at}"), CONTEXT)
            try:
                async for _ in stream:
                    seen[at] += 1
            finally:
                await stream.aclose()

        async def check(at: int) -> None:
            assert watched.called.count(f"n{at}") <= 1

        losable.go_away()
        awaits = await cut_at(CANCELLERS[canceller], work, check)
        assert awaits > 3
        losable.come_back()
        await drained(engine)
        for at, count in seen.items():
            row = await engine.attempt(f"m:c{at}", user_id="u")
            assert row is not None or not count
            assert row is None or row.status in ("executed", "failed")
            if f"n{at}" in watched.returned:
                assert row is not None
                assert row.status == "executed"
        await proved(engine)


async def test_one_that_comes_when_the_journal_is_back_waits_for_what_is_being_spooled(
    losable: LosableJournal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spooled, goes_on = Event(), Event()

    class SlowLock(FolderLock):
        def __enter__(self) -> None:
            super().__enter__()
            spooled.set()
            assert goes_on.wait(30)

    slow = Held()
    async with on_losable(losable, spooling(tmp_path), reader(slow.work)) as engine:
        monkeypatch.setattr("engine.spool_folder.FolderLock", SlowLock)
        told: list[StreamEvent] = []

        async def again() -> None:
            told.extend(await events_of(engine, call()))

        async with anyio.create_task_group() as tasks:
            losable.go_away()
            tasks.start_soon(events_of, engine, call())
            while not spooled.is_set():
                await checkpoint()
            losable.come_back()
            tasks.start_soon(again)
            with anyio.move_on_after(0.3):
                while not slow.runs:
                    await checkpoint()
            goes_on.set()
            with anyio.move_on_after(5):
                while not told:
                    await checkpoint()
            slow.release.set()
        await drained(engine)
        assert slow.runs == 1
        assert [event.reason for event in told if isinstance(event, Denied)] == ["duplicate"]
        await proved(engine)


async def test_what_another_engine_has_just_spooled_is_told_at_once(losable: LosableJournal, tmp_path: Path) -> None:
    """Its journal is back, and its last look was before the call: the folder has changed since, and is looked at."""
    watched, tool = watcher()
    settings = spooling(tmp_path)
    async with on_losable(losable, settings, tool) as first, on_losable(losable, settings, tool) as second:
        for number in range(3):
            asked = CallContext(user_id="u", message_id=f"m{number}")
            losable.go_away()
            seen = await events_of(first, call({"name": "n"}), asked)
            losable.come_back()
            again = await events_of(second, call({"name": "n"}), asked)
            assert [replace(event, position=None) for event in again] == seen
            assert len(watched.called) == number + 1
            await drained(first)
        await proved(second)
