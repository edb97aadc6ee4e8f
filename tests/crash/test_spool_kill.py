"""Processes killed while their journal is away: what they had said is in the log afterwards, once and in order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine import Engine
from events import Proposed
from projections import verify
from tests.crash.child import Child
from tests.crash.spooler import LOOPS, ReadBell, row, settings
from tests.engine.losing import LosableJournal, spool_files
from tests.engine.stuck_calls import end_lease, hold_long, kinds
from tests.logs import recorded_events

__all__ = ()

pytestmark = [pytest.mark.anyio, pytest.mark.soak]


class Said(msgspec.Struct, frozen=True):
    """An event that a process was given."""

    id: str
    key: str
    kind: str
    position: str


class Spooler(Child):
    """A process that runs calls while its journal is away."""

    def __init__(self, url: str, backend: str, folder: Path, name: str) -> None:
        environment = {"EFFECTS": str(folder / "effects")}
        super().__init__("tests.crash.spooler", url, backend, str(folder / "spool"), name, environment=environment)
        self.get_ready()

    @property
    def said(self) -> list[Said]:
        """What it was given."""
        return [Said(*line.split()) for line in self.lines]


@contextmanager
def spoolers(journal: LosableJournal, backend: str, folder: Path, count: int) -> Iterator[list[Spooler]]:
    processes: list[Spooler] = []
    try:
        for number in range(count):
            processes.append(Spooler(journal.url, backend, folder, f"p{number}"))
        yield processes
    finally:
        for process in processes:
            process.close()


def open_engine(journal: LosableJournal, folder: Path) -> Any:
    return Engine.open(journal.url, rows=[row()], tools=[ReadBell], settings=settings(folder / "spool"))


async def all_is_there(engine: Engine, folder: Path, processes: list[Spooler], ordered: bool = True) -> None:
    """Assert that everything said is in the log, once, and that nothing ran twice.

    :param ordered: no call was made after the journal was back: then those of each loop stand in the order they had
    """
    records = await recorded_events(engine.log)
    places = {record.event.id: record.position for record in records}
    assert len(places) == len(records)
    for process in processes:
        by_loop: dict[str, list[int]] = defaultdict(list)
        for said in process.said:
            assert said.id in places, said
            assert said.position in ("None", str(places[said.id]))
            by_loop[said.key.partition(":")[0] if ordered else said.key].append(places[said.id])
        assert all(positions == sorted(positions) for positions in by_loop.values())
    marks = folder / "effects"
    effects = Counter(marks.read_text().split() if marks.exists() else ())
    assert set(effects.values()) <= {1}
    proposed = {record.event.arguments["mark"] for record in records if isinstance(record.event, Proposed)}
    assert set(effects) <= proposed
    report = await verify(engine.log)
    assert report.ok, report.problems


async def test_behaviour_119_a_spooled_proposal_without_its_outcome_is_orphaned(
    losable: LosableJournal, tmp_path: Path, anyio_backend_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process was killed while the tool ran; outcomes that were spooled are none of reconcile's business."""
    monkeypatch.setenv("HANGS_AT", "-2")
    async with open_engine(losable, tmp_path):
        pass
    with spoolers(losable, anyio_backend_name, tmp_path, 1) as (process,):
        losable.go_away()
        process.begin()
        # Of each loop the first call's two events, and the second one's proposal.
        process.listen(3 * LOOPS)
        process.kill()
        losable.come_back()
        async with open_engine(losable, tmp_path) as engine:
            records = await recorded_events(engine.log)
            ended = {record.key for record in records if not isinstance(record.event, Proposed)}
            open_ones = {record.key for record in records} - ended
            assert len(open_ones) == LOOPS
            await hold_long(engine)
            for worker in {record.event.worker for record in records if isinstance(record.event, Proposed)}:
                await end_lease(engine, worker)
            report = await engine.reconcile()
            assert kinds(report) == dict.fromkeys(open_ones, "orphaned")
            for key in open_ones:
                user_id = next(record.user_id for record in records if record.key == key)
                row = await engine.attempt(key, user_id=user_id)
                assert row is not None
                assert (row.status, row.late) == ("failed", True)
                assert "not known" in str(row.error)
            await all_is_there(engine, tmp_path, [process])


@pytest.mark.parametrize("after", [1, 2, 25])
async def test_behaviour_111_killed_after_what_it_yielded(
    losable: LosableJournal, tmp_path: Path, anyio_backend_name: str, after: int
) -> None:
    async with open_engine(losable, tmp_path):
        pass
    with spoolers(losable, anyio_backend_name, tmp_path, 1) as (process,):
        losable.go_away()
        process.begin()
        process.listen(after)
        process.kill()
        assert {said.position for said in process.said} == {"None"}
        losable.come_back()
        assert spool_files(settings(tmp_path / "spool"))
        async with open_engine(losable, tmp_path) as engine:
            assert engine.statistics().spool.depth == 0
            await all_is_there(engine, tmp_path, [process])
        assert spool_files(settings(tmp_path / "spool")) == []


async def test_killed_before_and_after_the_journal_went_away(
    losable: LosableJournal, tmp_path: Path, anyio_backend_name: str
) -> None:
    """Three processes: what they had begun while the journal was there is ended from the spool."""
    async with open_engine(losable, tmp_path):
        pass
    with spoolers(losable, anyio_backend_name, tmp_path, 3) as processes:
        for process in processes:
            process.begin()
        for process in processes:
            process.listen(20)
        losable.go_away()
        for process in processes:
            # Not counted from here: what is on its way was said before.
            process.listen(len(process.said) + 150)
        for process in processes:
            process.kill()
        assert all(process.said[-1].position == "None" for process in processes)
        losable.come_back()
        async with open_engine(losable, tmp_path) as engine:
            # On one file the three are in each other's way before: to each, that is an outage of its own.
            await all_is_there(engine, tmp_path, processes, ordered=not losable.readable)
        assert spool_files(settings(tmp_path / "spool")) == []


async def test_a_living_process_writes_what_a_killed_one_left(
    losable: LosableJournal, tmp_path: Path, anyio_backend_name: str
) -> None:
    async with open_engine(losable, tmp_path):
        pass
    with spoolers(losable, anyio_backend_name, tmp_path, 2) as processes:
        losable.go_away()
        for process in processes:
            process.begin()
            process.listen(10)
        first, second = processes
        first.kill()
        second.listen(len(second.said) + 10)
        losable.come_back()
        while len(spool_files(settings(tmp_path / "spool"))) > 1:
            second.listen(len(second.said) + 1)
        second.kill()
        async with open_engine(losable, tmp_path) as engine:
            await all_is_there(engine, tmp_path, processes, ordered=False)
