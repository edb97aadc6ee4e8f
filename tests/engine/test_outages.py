"""The journal's database lost under ``execute``: what cannot be written does not run, what ran is not run again."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import aclosing

import anyio
import anyio.to_thread
import pytest
from anyio.lowlevel import checkpoint

from engine import CallContext, Engine, Settings
from engine.migration import CHAINS
from engine.settings import Limits
from events import Denied, Executed, Failed, LogUnavailable, Proposed
from events.postgres import migrate_postgres
from events.types import StreamEvent
from tests.engine.staging import CONTEXT, call, events_of, outcome_of, proved, row_of, staged_engine, stream_of, tool_of
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
    """Three calls of one engine at the moment its server dies."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.seen: list[StreamEvent] = []
        self.errors: list[LogUnavailable] = []
        self.left = anyio.Event()

    async def run(self, wanted: str) -> None:
        """Consume a call whose outcome cannot be written."""
        try:
            async with aclosing(self.engine.execute(call(call_id=wanted), CONTEXT)) as stream:
                async for event in stream:
                    self.seen.append(event)
        except LogUnavailable as error:
            self.errors.append(error)

    async def leave(self, wanted: str, when: anyio.Event) -> None:
        """Leave a call after its proposal, when the server is gone."""
        stream = self.engine.execute(call(call_id=wanted), CONTEXT)
        self.seen.append(await anext(stream))
        await when.wait()
        with anyio.fail_after(4):
            await stream.aclose()
        self.left.set()


async def test_a_server_that_dies_and_comes_back(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("events.postgres_committer.PATIENCE", 0.5)
    url = await anyio.to_thread.run_sync(own_server.create_database)
    await migrate_postgres(url, CHAINS)
    ran: list[str] = []
    dead, release = anyio.Event(), anyio.Event()

    async def works() -> str:
        ran.append("run")
        await release.wait()
        return "done"

    settings = Settings(limits=Limits(cleanup=0.3))
    with caplog.at_level(logging.WARNING):
        async with staged_engine(url, tool_of(works), settings=settings) as engine:
            stage = Stage(engine)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stage.run, "running")
                tasks.start_soon(stage.leave, "leaving", dead)
                while not ran or len(stage.seen) < 2:
                    await checkpoint()
                await anyio.to_thread.run_sync(own_server.kill)
                dead.set()
                release.set()
                # A proposal that cannot be written: nothing is yielded, nothing runs.
                with pytest.raises(LogUnavailable) as refused:
                    await events_of(engine, call(call_id="refused"))
                await stage.left.wait()
            assert ran == ["run"]
            assert [type(event) for event in stage.seen] == [Proposed, Proposed]
            (lost,) = stage.errors
            assert PASSWORD not in str(lost) + str(refused.value) + caplog.text

            await anyio.to_thread.run_sync(own_server.start)
            with anyio.fail_after(30):
                await until_back(engine)
            # What was in flight is not run again by its repetition: it is closed, for nobody knows its outcome.
            told = await outcome_of(engine, call(call_id="running"))
            assert isinstance(told, Failed)
            assert told.kind == "orphaned"
            # Its end is still being recorded, by itself; until then it counts as running.
            with anyio.fail_after(30):
                while not isinstance(left := await outcome_of(engine, call(call_id="leaving")), Failed):
                    assert isinstance(left, Denied)
            assert left.kind in ("cancelled", "orphaned")
            assert ran == ["run"]
            assert isinstance(await outcome_of(engine, call(call_id="refused")), Executed)
            assert (await row_of(engine, "m:refused")).status == "executed"
            for event in stage.seen:
                assert (await stream_of(engine, event.key))[0] == event
            await proved(engine)


async def until_back(engine: Engine) -> None:
    while True:
        try:
            await engine.log.head()
        except LogUnavailable:
            continue
        return
