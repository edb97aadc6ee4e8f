"""What ``execute`` promises holds on every event loop and every store."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from engine import CallContext, Engine
from events import Denied, Executed, Failed, Paused, Proposed
from tests.engine.cancelling import CANCELLERS, cut_at
from tests.engine.staging import (
    CONTEXT,
    bare,
    call,
    events_of,
    outcome_of,
    proved,
    row_of,
    staged,
    staged_engine,
    stream_of,
    tool_of,
)

__all__ = ()

pytestmark = pytest.mark.anyio

NAMED = {"type": "object", "properties": {"name": {"type": "string"}}}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that outlives its engine, and that two can share."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/journal.db"
    return str(request.getfixturevalue("postgres_url"))


class Worker:
    """A tool that notes what was begun and what was finished."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.finished: list[str] = []

    async def work(self, name: str = "") -> str:
        self.begun.append(name)
        await checkpoint()
        self.finished.append(name)
        return name

    def work_in_a_thread(self, name: str = "") -> str:
        self.begun.append(name)
        self.finished.append(name)
        return name


@pytest.mark.parametrize("how", ["work", "work_in_a_thread"])
async def test_a_call_runs_once_and_is_recorded(log_url: str, how: str) -> None:
    worker = Worker()
    async with staged(log_url, getattr(worker, how), parameters=NAMED) as engine:
        first = await events_of(engine, call({"name": "n"}))
        assert [type(event) for event in first] == [Proposed, Executed]
        assert await stream_of(engine) == first
        assert (await row_of(engine)).status == "executed"
        assert await events_of(engine, call({"name": "n"})) == first
        assert worker.finished == ["n"]
        assert (await outcome_of(engine, call({"name": "n"}), bare)).key == "c1"
        await proved(engine)


async def test_many_at_once(log_url: str) -> None:
    worker = Worker()
    async with staged(log_url, worker.work, parameters=NAMED) as engine:
        ended: list[Any] = []

        async def one(number: int) -> None:
            ended.append(await outcome_of(engine, call({"name": f"n{number}"}, call_id=f"c{number}")))

        async with anyio.create_task_group() as tasks:
            for number in range(64):
                tasks.start_soon(one, number)
        assert len([event for event in ended if isinstance(event, Executed)]) == 64
        assert sorted(worker.finished) == sorted(f"n{number}" for number in range(64))
        await proved(engine)


async def test_left_at_any_await_nothing_stays_in_flight(log_url: str, anyio_backend_name: str) -> None:
    worker = Worker()
    async with staged(log_url, worker.work, parameters=NAMED) as engine:
        for name in CANCELLERS if anyio_backend_name == "asyncio" else ["scope"]:

            async def consume(at: int, name: str = name) -> None:
                context = CallContext(user_id="u", message_id=f"{name}{at}")
                async with aclosing(engine.execute(call({"name": f"{name}{at}"}), context)) as stream:
                    async for _ in stream:
                        await checkpoint()

            async def check(at: int, name: str = name) -> None:
                row = await engine.attempt(f"{name}{at}:c1", user_id="u")
                finished = worker.finished.count(f"{name}{at}")
                assert finished <= 1
                if row is None:
                    assert f"{name}{at}" not in worker.begun
                else:
                    assert row.status == ("executed" if finished else "failed")

            assert await cut_at(CANCELLERS[name], consume, check) >= 4
        await proved(engine)


async def test_every_way_to_end(log_url: str) -> None:
    async def raises() -> None:
        raise ValueError("boom")

    async def hangs() -> None:
        await anyio.sleep_forever()

    async def waits() -> None:
        raise AssertionError("nobody approved it")

    tools = [
        tool_of(raises, name="raises", action="raises"),
        tool_of(hangs, name="hangs", action="hangs", timeout=0.02),
        tool_of(waits, name="waits", action="waits", metadata={"require_approval": True}),
    ]
    headless = CallContext(user_id="u", message_id="h", headless=True)
    async with staged_engine(log_url, *tools) as engine:
        kinds = {}
        for name in ("raises", "hangs", "nothing"):
            event = await outcome_of(engine, call(name=name, call_id=name))
            assert isinstance(event, Failed)
            kinds[name] = event.kind
        assert kinds == {"raises": "exception", "hangs": "timeout", "nothing": "unknown_tool"}
        assert isinstance(await outcome_of(engine, call(name="waits")), Paused)
        assert isinstance(await outcome_of(engine, call(name="waits"), headless), Denied)
        await proved(engine)


async def test_an_engine_that_is_closed_leaves_nothing_in_flight(shared_url: str) -> None:
    worker = Worker()
    async with staged(shared_url, worker.work, parameters=NAMED) as engine:
        stream = engine.execute(call({"name": "n"}), CONTEXT)
        await anext(stream)
    await stream.aclose()
    async with staged(shared_url, worker.work, parameters=NAMED) as engine:
        assert (await row_of(engine)).status == "failed"
        await proved(engine)


@pytest.mark.parametrize("anyio_backend", ["asyncio", ("asyncio", {"use_uvloop": True})], ids=["asyncio", "uvloop"])
async def test_a_native_timeout_of_the_caller(log_url: str) -> None:
    """``asyncio.timeout`` knows no AnyIO scopes; what it cuts off is closed as well."""
    running = anyio.Event()

    async def hangs() -> None:
        running.set()
        await anyio.sleep_forever()

    async with staged(log_url, hangs) as engine:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await events_of(engine, call())
        assert running.is_set()
        failed = (await stream_of(engine))[1]
        assert isinstance(failed, Failed)
        assert failed.kind == "cancelled"
        await proved(engine)


async def test_two_engines_on_one_journal(shared_url: str) -> None:
    worker = Worker()
    async with AsyncExitStack() as stack:
        engines: list[Engine] = [
            await stack.enter_async_context(staged(shared_url, worker.work, parameters=NAMED)) for _ in range(2)
        ]
        ended: list[Any] = []

        async def one(engine: Engine, number: int) -> None:
            ended.append(await outcome_of(engine, call({"name": f"n{number}"}, call_id=f"c{number}")))

        async with anyio.create_task_group() as tasks:
            for number in range(16):
                for engine in engines:
                    tasks.start_soon(one, engine, number)
        assert sorted(worker.finished) == sorted(f"n{number}" for number in range(16))
        assert len(ended) == 32
        assert {type(event) for event in ended} <= {Executed, Denied}
        await proved(engines[0])
