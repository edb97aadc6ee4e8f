"""``confirm``: the message that carries the results is stored (BEHAVIOUR 118)."""

from __future__ import annotations

from contextlib import AsyncExitStack, aclosing

import anyio
import pytest

from engine import CallContext, Engine
from events import Confirmed, Executed
from tests.engine.cancelling import CANCELLERS, cut_at
from tests.engine.staging import CONTEXT, bare, call, events_of, proved, row_of, staged, stream_of

__all__ = ()

pytestmark = pytest.mark.anyio


async def sometimes(fail: bool = False) -> str:
    if fail:
        raise ValueError("boom")
    return "done"


FAIL = {"type": "object", "properties": {"fail": {"type": "boolean"}}}


async def two_and_one(engine: Engine, message: str = "m") -> None:
    """Stage a message with two executed calls and one that failed."""
    context = CallContext(user_id="u", message_id=message)
    for number, fail in enumerate((False, True, False), 1):
        await events_of(engine, call({"fail": fail}, call_id=f"c{number}"), context)


async def statuses(engine: Engine, message: str = "m") -> list[str]:
    return [(await row_of(engine, f"{message}:c{number}")).status for number in (1, 2, 3)]


async def test_behaviour_118_executed_calls_become_confirmed(journal_url: str) -> None:
    async with staged(journal_url, sometimes, parameters=FAIL) as engine:
        await two_and_one(engine)
        assert await engine.confirm("m", user_id="u") == 2
        assert await statuses(engine) == ["confirmed", "failed", "confirmed"]
        assert isinstance((await stream_of(engine, "m:c1"))[-1], Confirmed)
        before = await engine.log.head()
        assert await engine.confirm("m", user_id="u") == 0
        assert await engine.log.head() == before
        await proved(engine)


async def test_only_that_message_of_that_tenant(journal_url: str) -> None:
    async with staged(journal_url, sometimes, parameters=FAIL) as engine:
        await two_and_one(engine, "m")
        await two_and_one(engine, "m:c1")
        await events_of(engine, call({}), CallContext(user_id="u", message_id="m2"))
        for message, tenant in (("m", None), ("m", "v"), ("m", ""), ("", "u"), ("c1", "u"), ("nothing", "u")):
            assert await engine.confirm(message, user_id=tenant) == 0
        assert await engine.confirm("m", user_id="u") == 2
        assert await statuses(engine, "m:c1") == ["executed", "failed", "executed"]
        assert (await row_of(engine, "m2:c1")).status == "executed"
        await proved(engine)


async def test_it_races_with_itself(journal_url: str) -> None:
    async with AsyncExitStack() as stack:
        engines = [await stack.enter_async_context(staged(journal_url, sometimes, parameters=FAIL)) for _ in range(2)]
        counts: list[int] = []

        async def confirm(engine: Engine) -> None:
            counts.append(await engine.confirm("m", user_id="u"))

        await two_and_one(engines[0])
        async with anyio.create_task_group() as tasks:
            for engine in engines * 4:
                tasks.start_soon(confirm, engine)
        assert sorted(counts) == [0] * 7 + [2]
        assert await statuses(engines[0]) == ["confirmed", "failed", "confirmed"]
        kept = [record.event async for record in engines[0].log.read(user_id="u")]
        assert len([event for event in kept if isinstance(event, Confirmed)]) == 2
        await proved(engines[0])


async def test_a_call_that_still_runs_is_confirmed_next_time(journal_url: str) -> None:
    async with staged(journal_url, sometimes, parameters=FAIL) as engine:
        await events_of(engine, call({}, call_id="c1"))
        async with aclosing(engine.execute(call({}, call_id="c2"), CONTEXT)) as stream:
            await anext(stream)
            assert await engine.confirm("m", user_id="u") == 1
            assert isinstance(await anext(stream), Executed)
        assert await engine.confirm("m", user_id="u") == 1
        await proved(engine)


async def test_repetitions_and_ordinals_count_as_what_they_are(journal_url: str) -> None:
    async with staged(journal_url, sometimes, parameters=FAIL) as engine:
        await events_of(engine, call({}, call_id="k"))
        await events_of(engine, call({"fail": False}, call_id="k"))
        await events_of(engine, call({}, call_id="k"))
        assert await engine.confirm("m", user_id="u") == 2
        assert (await row_of(engine, "m:k#2")).status == "confirmed"


async def test_without_a_message_there_is_nothing_left_to_confirm(sqlite_url: str) -> None:
    async with staged(sqlite_url, sometimes, parameters=FAIL) as engine:
        await events_of(engine, call({}), bare)
        assert await engine.confirm("c1", user_id="u") == 0


async def test_cancelled_it_has_confirmed_all_or_none(sqlite_url: str, anyio_backend_name: str) -> None:
    async with staged(sqlite_url, sometimes, parameters=FAIL) as engine:
        for name in CANCELLERS if anyio_backend_name == "asyncio" else ["scope"]:

            async def confirm(at: int, name: str = name) -> None:
                await engine.confirm(f"{name}{at}", user_id="u")

            async def check(at: int, name: str = name) -> None:
                found = await statuses(engine, f"{name}{at}")
                assert found in (["confirmed", "failed", "confirmed"], ["executed", "failed", "executed"])

            for at in range(1, 12):
                await two_and_one(engine, f"{name}{at}")
            assert 2 < await cut_at(CANCELLERS[name], confirm, check) < 11
        await proved(engine)
