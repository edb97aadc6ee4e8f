"""The journal's database lost under ``execute``: what cannot be written does not run, what ran is not run again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing

import anyio
import anyio.to_thread
import pytest
from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from engine import CallContext, Engine, Settings
from engine.migration import CHAINS
from engine.settings import Limits
from events import Denied, Executed, Failed, LogUnavailable, Proposed
from events.postgres import migrate_postgres
from events.types import StreamEvent
from tests.engine.losing import drained
from tests.engine.staging import CONTEXT, call, events_of, outcome_of, proved, row_of, staged_engine, stream_of, tool_of
from tests.engine.watching import Held
from tests.postgres_proxy import postgres_proxy
from tests.postgres_server import PASSWORD, PostgresServer, postgres_server

__all__ = ()

pytestmark = [pytest.mark.postgres, pytest.mark.anyio]


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server of the test's own, to be killed."""
    with postgres_server() as server:
        yield server


@pytest.mark.parametrize("marker", ["c1", "needle"], ids=["the proposal's", "the outcome's"])
async def test_an_append_whose_answer_was_lost_counts_once(postgres_url: str, marker: str) -> None:
    ran: list[int] = []

    async def works() -> str:
        ran.append(1)
        return "needle"

    with postgres_proxy(postgres_url) as proxy:
        async with staged_engine(proxy.url, tool_of(works)) as engine:
            await events_of(engine, call(call_id="warm"))
            ran.clear()
            proxy.lose_answer_to(marker)
            context = CallContext(user_id="u", message_id="m2")
            first, executed = await events_of(engine, call(), context)
            assert proxy.lost == 1
            assert isinstance(executed, Executed)
            assert await stream_of(engine, "m2:c1") == [first, executed]
            assert ran == [1]
            await proved(engine)


class Stage:
    """Calls of one engine at the moment its server dies: one runs, one is left, one is proposed too late."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.seen: list[StreamEvent] = []
        self.errors: list[LogUnavailable] = []
        self.dead = anyio.Event()

    async def run(self) -> None:
        """Consume a call whose outcome cannot be written: it is yielded from the spool."""
        async with aclosing(self.engine.execute(call(call_id="running"), CONTEXT)) as stream:
            async for event in stream:
                self.seen.append(event)

    async def leave(self) -> None:
        """Leave a call after its proposal, when the server is gone: the consumer is not held up for ever."""
        stream = self.engine.execute(call(call_id="leaving"), CONTEXT)
        self.seen.append(await anext(stream))
        await self.dead.wait()
        with anyio.fail_after(30):
            await stream.aclose()

    async def propose(self) -> None:
        """Make a call whose proposal cannot be written: nothing is yielded."""
        await self.dead.wait()
        with pytest.raises(LogUnavailable) as refused:
            await events_of(self.engine, call(call_id="refused"))
        self.errors.append(refused.value)


async def test_a_server_that_dies_and_comes_back(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("events.postgres_committer.PATIENCE", 0.5)
    url = await anyio.to_thread.run_sync(own_server.create_database)
    await migrate_postgres(url, CHAINS)
    held = Held()
    settings = Settings(limits=Limits(cleanup=0.3))
    async with staged_engine(url, tool_of(held.work), settings=settings) as engine:
        stage = Stage(engine)
        async with anyio.create_task_group() as tasks:
            for work in (stage.run, stage.leave, stage.propose):
                tasks.start_soon(work)
            while not held.runs or len(stage.seen) < 2:
                await checkpoint()
            await anyio.to_thread.run_sync(own_server.kill)
            stage.dead.set()
            held.release.set()
        assert [type(event) for event in stage.seen] == [Proposed, Proposed, Executed]
        assert (stage.seen[2].late, stage.seen[2].position) == (True, None)
        assert held.runs == 1
        assert len(stage.errors) == 1
        assert PASSWORD not in f"{stage.errors} {caplog.text}"
        await anyio.to_thread.run_sync(own_server.start)
        await until_back(engine)
        await settled(engine)
        await drained(engine)
        assert held.runs == 2, "only what was refused runs now"
        for event in stage.seen:
            assert event in [replace(found, position=event.position) for found in await stream_of(engine, event.key)]
        await proved(engine)


async def settled(engine: Engine) -> None:
    """Make the calls again: what ran is told as it ended, and what was left is closed; neither runs again."""
    assert isinstance(await outcome_of(engine, call(call_id="running")), Executed)
    # Its end is still being recorded, by itself; until then it counts as running.
    with anyio.fail_after(30):
        while not isinstance(left := await outcome_of(engine, call(call_id="leaving")), Failed):
            assert isinstance(left, Denied)
    assert left.kind in ("cancelled", "orphaned")
    assert isinstance(await outcome_of(engine, call(call_id="refused")), Executed)
    assert (await row_of(engine, "m:refused")).status == "executed"


async def until_back(engine: Engine) -> None:
    """Wait for the server."""
    while True:
        try:
            await engine.log.head()
        except LogUnavailable:
            continue
        return
