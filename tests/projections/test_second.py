"""A second process finds what this one would, and whatever becomes of it changes nothing but the time it takes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from sqlalchemy import text

from events import EventLog, LogUnavailable
from events.codec import SCHEMA_VERSIONS, Codec
from events.seal import NO_END, seal
from projections import Problem, rebuild, verify
from projections.hand import Hand
from projections.portions import Hands, LostError, Part, Portion, portions
from projections.second import second_process, wants_second
from projections.sharing import Sharing
from tests.lives import live_all
from tests.logs import opened, tamper

__all__ = ()

pytestmark = pytest.mark.anyio


def seconds(parent: int | None = None) -> list[int]:
    """The processes that this one (or another) has started to help, and that still run."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, started_by = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            helps = b"projections.second_main" in (folder / "cmdline").read_bytes()
            if helps and state != "Z" and int(started_by) == (parent or os.getpid()):
                found.append(int(folder.name))
    return found


async def plant(log: EventLog) -> None:
    """Make a log of several seals and tenants, with something of every kind wrong."""
    for message_id in ("m", "n", "o"):
        await live_all(log, message_id)
        await seal(log)
    await tamper(
        log,
        "UPDATE tool_call_attempts SET worker = 'x' WHERE key IN ('m:c1', 'o:c1')",
        "UPDATE tool_call_events SET data = '{}' WHERE key = 'n:c2' AND version = 2",
        "UPDATE tool_call_events SET version = 9 WHERE key = 'n:c4' AND version = 2",
        "DELETE FROM tool_call_attempts WHERE key = 'n:c3'",
        "DELETE FROM tool_call_payloads WHERE tenant <> 'u'",
        "UPDATE tool_call_seals SET digest = 'x' WHERE first = 1",
        "UPDATE tool_call_streams SET stream = stream + 100000 WHERE key = 'o:c0'",
        "INSERT INTO tool_call_streams (tenant, key, stream) VALUES ('u', 'ghost', 100001)",
    )


async def all_parts(hands: Hands, wanted: list[Portion]) -> list[Part]:
    found = []
    for portion in wanted:
        async with aclosing(hands.parts(portion)) as parts:
            found += [part async for part in parts]
    return found


async def test_it_finds_in_every_portion_what_this_process_finds(
    log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await plant(log)
    head = await log.head()
    monkeypatch.setattr("projections.portions._SIZE", 100)
    wanted = [*portions("seals", 0, head, NO_END), *portions("streams", 0, head)]
    wanted += [Portion("numbers", -1, head), *portions("rows", 0, head)]
    assert len(wanted) >= 8
    here = await all_parts(Hand(log), wanted)
    async with second_process(log, head) as second:
        there = await all_parts(second, wanted)
    kinds = {problem.kind for part in here for problem in part.problems}
    assert kinds == {"seal", "stream", "event", "row", "payload"}
    assert [part.joined(Part(upto=0)) for part in there] == [part.joined(Part(upto=0)) for part in here]
    assert [[tuple(row) for row in part.rows] for part in there] == [list(part.rows) for part in here]
    assert [list(part.kept) for part in there] == [list(part.kept) for part in here]
    assert seconds() == []


async def test_the_report_is_the_same(log: EventLog, monkeypatch: pytest.MonkeyPatch) -> None:
    await plant(log)
    monkeypatch.setattr("projections.portions._SIZE", 50)
    alone = await verify(log, processes=1)
    assert len(alone.problems) > 6
    assert await verify(log, processes=2) == alone
    assert await rebuild(log, processes=2) == await rebuild(log, processes=1)
    assert seconds() == []


async def test_its_death_is_made_up_for(log: EventLog) -> None:
    await live_all(log)
    every_row = text("SELECT * FROM tool_call_attempts ORDER BY stream")
    before = await log.store.read(every_row)
    killed: list[int] = []

    def kill(done: int, total: int) -> None:
        if not killed:
            killed.extend(seconds())
            os.kill(killed[0], signal.SIGKILL)

    report = await rebuild(log, progress=kill, processes=2)
    assert len(killed) == 1
    assert (report.ok, report.events) == (True, await log.head())
    assert await log.store.read(every_row) == before
    with pytest.raises(LostError):
        await ask_a_dead_one(log)
    assert seconds() == []


async def ask_a_dead_one(log: EventLog) -> None:
    async with second_process(log, 1) as second:
        os.kill(seconds()[0], signal.SIGKILL)
        await all_parts(second, [Portion("streams", 0, 1)])


async def test_a_failure_of_the_database_is_raised_as_itself(log: EventLog) -> None:
    await live_all(log, tenants=("u",))
    await log.store.write([text("DROP TABLE tool_call_seals")])
    with pytest.raises(LogUnavailable):
        await verify(log, processes=2)
    assert seconds() == []


async def test_cancelled_nothing_of_it_is_left(log: EventLog) -> None:
    await live_all(log)
    with anyio.CancelScope() as scope:

        def cancel(done: int, total: int) -> None:
            [second] = seconds()
            assert b"sqlite" not in Path(f"/proc/{second}/cmdline").read_bytes()
            assert b"postgres" not in Path(f"/proc/{second}/cmdline").read_bytes()
            scope.cancel()

        await rebuild(log, progress=cancel, processes=2)
    assert scope.cancelled_caught
    assert seconds() == []
    assert (await verify(log, processes=2)).ok


@pytest.mark.parametrize("program", ["/nowhere/python", "/bin/true"])
async def test_where_it_cannot_be_started_this_process_does_it_all(
    log: EventLog, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    await live_all(log)
    alone = await verify(log, processes=1)
    monkeypatch.setattr(sys, "executable", program)
    assert await verify(log, processes=2) == alone
    assert await rebuild(log, processes=2) == await rebuild(log, processes=1)


async def test_it_leaves_another_log_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    async with opened(f"sqlite:///{path}") as log:
        await live_all(log)
        head = await log.head()
        for file in tmp_path.iterdir():
            file.rename(tmp_path / f"moved-{file.name}")
        async with opened(f"sqlite:///{path}") as other:
            await live_all(other)
            with pytest.raises(LostError):
                await ask(log, Portion("streams", 0, head))
            assert await ask(other, Portion("streams", 0, head))


async def ask(log: EventLog, portion: Portion) -> list[Part]:
    async with second_process(log, portion.upto) as second:
        return await all_parts(second, [portion])


async def test_it_ends_with_the_process_that_started_it(tmp_path: Path, anyio_backend: str) -> None:
    url = f"sqlite:///{tmp_path}/journal.db"
    async with opened(url) as log:
        await live_all(log)
    script = (
        "import anyio, sys\nfrom projections import rebuild\nfrom tests.logs import opened\n"
        "def stand(done, total):\n    print(done, flush=True)\n    sys.stdin.readline()\n"
        "async def main(url):\n    async with opened(url) as log:\n"
        "        await rebuild(log, progress=stand, processes=2)\n"
        "anyio.run(main, sys.argv[1], backend=sys.argv[2])\n"
    )
    command = [sys.executable, "-c", script, url, anyio_backend]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        assert first.stdout.readline()
        [second] = seconds(first.pid)
        gone = os.pidfd_open(second)
        first.kill()
        first.wait()
    await anyio.wait_readable(gone)
    os.close(gone)


async def test_who_gets_a_second_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/journal.db"
    async with opened(url) as log:
        assert wants_second(log, 1, 2)
        assert not wants_second(log, 10**6, 1)
        assert not wants_second(log, 199_999, None)
        monkeypatch.setattr("projections.second._processors", lambda: 2)
        assert wants_second(log, 200_000, None)
        monkeypatch.setattr("projections.second._processors", lambda: 1)
        assert not wants_second(log, 200_000, None)
        monkeypatch.setattr(sys, "frozen", True, raising=False)
        assert not wants_second(log, 200_000, 2)
        monkeypatch.undo()
    async with opened(url, Codec(versions={**SCHEMA_VERSIONS})) as log:
        assert not wants_second(log, 10**6, 2)
    async with opened("sqlite://") as log:
        assert not wants_second(log, 10**6, 2)


async def test_a_rebuild_on_postgres_stays_in_one_process_unless_told_otherwise(
    log: EventLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int | None] = []

    def wants(_log: EventLog, _amount: int, processes: int | None) -> bool:
        asked.append(processes)
        return False

    monkeypatch.setattr("projections.replay.wants_second", wants)
    for processes in (None, 2):
        assert (await rebuild(log, processes=processes)).ok
    assert asked == [1 if log.store.dialect == "postgresql" else None, 2]


class FakeHands:
    """Hands that say what they do: a part for each number, until they are lost."""

    def __init__(self, until: int = NO_END) -> None:
        self._until = until

    async def parts(self, portion: Portion) -> AsyncGenerator[Part, None]:
        for number in range(portion.after + 1, portion.upto + 1):
            await anyio.lowlevel.checkpoint()
            if number >= self._until:
                raise LostError
            yield Part(upto=number, events=1, problems=(Problem(kind="row", message=f"{number}"),))


async def test_parts_are_taken_in_order_whoever_found_them() -> None:
    taken: list[Part] = []
    sharing = Sharing(spread(10, 5), lambda _, part: taken.append(part))
    with pytest.raises(LostError):
        await sharing.work(FakeHands(46), last_first=True)
    with pytest.raises(LostError):
        await sharing.work(FakeHands(23), last_first=True)
    assert taken == []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sharing.work, FakeHands())
        tasks.start_soon(sharing.work, FakeHands())
    assert sum(part.events for part in taken) == 50
    assert [int(problem.message) for part in taken for problem in part.problems] == list(range(1, 51))


def spread(size: int, count: int) -> Iterator[Portion]:
    for number in range(count):
        yield Portion("streams", number * size, (number + 1) * size)


async def test_what_waits_for_its_turn_is_no_more_than_is_reported() -> None:
    taken: list[Part] = []
    sharing = Sharing(spread(1500, 2), lambda _, part: taken.append(part))
    await sharing.work(FakeHands(), last_first=True)
    assert [part.upto for part in taken] == [*range(1, 1501), 3000]
    assert (len(taken[-1].problems), taken[-1].more, taken[-1].events) == (1000, 500, 1500)
