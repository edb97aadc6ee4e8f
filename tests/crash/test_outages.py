"""The journal lost in every way there is: the log stays legal, nothing runs twice, nothing yielded is lost."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from anyio.lowlevel import checkpoint

from engine import CallContext, Engine
from engine.migration import CHAINS
from events import Executed, Failed, Proposed
from events.postgres import migrate_postgres
from tests.crash.outage_load import Load
from tests.engine.losing import LosableJournal, drained, on_losable, reader, spooling
from tests.engine.staging import call, proved, staged_engine, stream_of
from tests.engine.test_leaving import LEAVING
from tests.engine.watching import NAMED, Watched
from tests.postgres_proxy import postgres_proxy
from tests.postgres_server import postgres_server
from tests.shape import ROOT

__all__ = ()

pytestmark = [pytest.mark.anyio, pytest.mark.soak]


@pytest.mark.postgres
@pytest.mark.timeout(300)
async def test_postgres_stopped_for_ten_seconds_under_load(tmp_path: Path) -> None:
    load = Load(16)
    with postgres_server() as server:
        url = await anyio.to_thread.run_sync(server.create_database)
        await migrate_postgres(url, CHAINS)
        async with staged_engine(url, *load.tools, rows=load.rows, settings=spooling(tmp_path)) as engine:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(load.run, engine)
                await anyio.sleep(2)
                await anyio.to_thread.run_sync(server.kill)
                before = len(load.seen)
                await anyio.sleep(10)
                spooled = load.seen[before:]
                await anyio.to_thread.run_sync(server.start)
                await anyio.sleep(5)
                load.over = True
            assert any(isinstance(event, Executed) and event.position is None for event in spooled)
            assert load.seen[-1].position is not None
            assert load.refused
            await load.proved(engine)


@pytest.mark.postgres
@pytest.mark.timeout(300)
async def test_a_connection_dropped_in_mid_transaction_again_and_again(postgres_url: str, tmp_path: Path) -> None:
    """Proposals and outcomes that are written, or not: the client never hears."""
    load = Load(8)
    with postgres_proxy(postgres_url) as proxy:
        async with staged_engine(proxy.url, *load.tools, rows=load.rows, settings=spooling(tmp_path)) as engine:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(load.run, engine)
                for _ in range(20):
                    for marker in ("c1", "needle"):
                        lost = proxy.lost
                        proxy.lose_answer_to(marker)
                        with anyio.move_on_after(1):
                            while proxy.lost == lost:
                                await anyio.sleep(0.01)
                    proxy.go_away()
                    await anyio.sleep(0.05)
                    proxy.come_back()
                load.over = True
            assert proxy.lost > 10
            await load.proved(engine)


@pytest.mark.timeout(300)
async def test_a_journal_that_comes_and_goes(losable: LosableJournal, tmp_path: Path) -> None:
    load = Load(8)
    async with on_losable(losable, spooling(tmp_path), *load.tools, rows=load.rows) as engine:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(load.run, engine)
            for _ in range(15):
                await anyio.sleep(0.2)
                losable.go_away()
                await anyio.sleep(0.3)
                losable.come_back()
            await anyio.sleep(0.2)
            load.over = True
        assert any(event.position is None for event in load.seen)
        await load.proved(engine)


def test_a_full_disk(tmp_path: Path) -> None:
    """SQLite's files may not grow any more; the spool's may. In a process of its own, for limits are a process's."""
    for backend in ("asyncio", "trio"):
        folder = tmp_path / backend
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-m", "tests.crash.full_disk", str(folder), backend],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


async def leave_to_the_collector(stream: Any, events: int) -> None:
    async for _ in stream:
        events -= 1
        if not events:
            break
    del stream
    gc.collect()


class Stage:
    """One call whose journal goes away at a certain moment, and whose consumer leaves after a certain event."""

    def __init__(self, journal: LosableJournal, moment: str) -> None:
        self.journal = journal
        self.moment = moment
        self.watched = Watched()

    async def works(self, name: str) -> str:
        if self.moment == "while the tool runs":
            self.journal.go_away()
        return await self.watched.works(name)

    async def watch(self, engine: Engine, name: str, leave: Callable[[Any, int], Awaitable[None]], events: int) -> None:
        if self.moment == "before":
            self.journal.go_away()
        context = CallContext(user_id="u", message_id=name)
        stream = _Watching(engine.execute(call({"name": name}), context), self._lose)
        await leave(stream, events)

    def _lose(self, count: int) -> None:
        if self.moment == "after the proposal" and count == 1:
            self.journal.go_away()


class _Watching:
    """A stream that tells when an event was yielded."""

    def __init__(self, stream: Any, tell: Callable[[int], None]) -> None:
        self._stream = stream
        self._tell = tell
        self._count = 0

    def __aiter__(self) -> _Watching:
        return self

    async def __anext__(self) -> Any:
        event = await anext(self._stream)
        self._count += 1
        self._tell(self._count)
        return event

    async def aclose(self) -> None:
        await self._stream.aclose()


@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("events", [1, 2])
@pytest.mark.parametrize("moment", ["before", "after the proposal", "while the tool runs"])
@pytest.mark.parametrize("leave", [*LEAVING, leave_to_the_collector])
async def test_consumers_that_go_while_the_journal_is_away(
    losable: LosableJournal, tmp_path: Path, leave: Callable[[Any, int], Awaitable[None]], moment: str, events: int
) -> None:
    if moment == "while the tool runs" and events == 1:
        pytest.skip("the tool does not run then")
    stage = Stage(losable, moment)
    async with on_losable(losable, spooling(tmp_path), reader(stage.works, parameters=NAMED)) as engine:
        await stage.watch(engine, "n", leave, events)
        losable.come_back()
        with anyio.fail_after(30):
            while len(stream := await stream_of(engine, "n:c1")) < 2:
                await checkpoint()
        await drained(engine)
        assert [type(event) for event in stream] == [Proposed, Executed if events == 2 else Failed]
        assert stage.watched.called == ["n"] * (events - 1)
        await proved(engine)
