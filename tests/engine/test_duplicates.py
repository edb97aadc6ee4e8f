"""The same call again, in every state it may be in (DESIGN 6, Duplicates)."""

from __future__ import annotations

from contextlib import AsyncExitStack, aclosing
from typing import Any

import anyio
import pytest
from msgspec.structs import replace
from sqlalchemy import delete

from engine import CallContext, Engine, ToolRow
from events import Denied, Executed, Failed, LateOutcome, Paused, Proposed
from events.schema import leases
from events.types import StreamEvent
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

BAY = {"type": "object", "properties": {"bay": {"type": "integer"}}}


class Scale:
    """A tool that counts its runs, and holds one open for as long as its test likes.

    ``held`` is set when that run has begun; it ends when ``open`` is set.
    """

    def __init__(self) -> None:
        self.runs: list[Any] = []
        self.held, self.open = anyio.Event(), anyio.Event()
        self.holds = False

    async def weigh(self, bay: int = 0) -> int:
        self.runs.append(bay)
        if self.holds:
            self.holds = False
            self.held.set()
            await self.open.wait()
        return bay * 11

    def hold(self) -> None:
        """Keep the next run, and only that, from ending."""
        self.holds = True


async def declare_dead(engine: Engine) -> None:
    """Take an engine's lease away: as if it had been silent for half a minute."""
    worker = engine.statistics().worker
    await engine.log.store.write([delete(leases).where(leases.c.worker == worker)])


def scale_tool(scale: Scale, **facts: Any) -> Any:
    return tool_of(scale.weigh, action="weigh", parameters=BAY, **facts)


def weigh(bay: int, call_id: str = "k1") -> Any:
    return call({"bay": bay}, call_id=call_id, name="weigh")


async def test_behaviour_104_an_ended_call_is_told_again(journal_url: str) -> None:
    scale = Scale()
    async with staged_engine(journal_url, scale_tool(scale)) as engine:
        first = await events_of(engine, weigh(1))
        before = await row_of(engine, "m:k1")
        for _ in range(2):
            assert await events_of(engine, weigh(1)) == first
        assert scale.runs == [1]
        assert await row_of(engine, "m:k1") == before
        assert await engine.log.head() == 2
        await engine.confirm("m", user_id="u")
        assert await events_of(engine, weigh(1)) == first
        await proved(engine)


async def test_a_failed_call_is_told_again_too(journal_url: str) -> None:
    runs: list[int] = []

    async def boom() -> None:
        runs.append(1)
        raise ValueError("boom")

    async with staged(journal_url, boom) as engine:
        first = await events_of(engine, call())
        assert await events_of(engine, call(), reraise=True) == first
        assert runs == [1]


async def test_paused_and_denied_calls_are_told_again(journal_url: str) -> None:
    async def never() -> None:
        raise AssertionError("it needs approval")

    headless = CallContext(user_id="u", message_id="h", headless=True)
    async with staged(journal_url, never, metadata={"require_approval": True}) as engine:
        for context, kind in ((CONTEXT, Paused), (headless, Denied)):
            first = await events_of(engine, call(), context)
            assert isinstance(first[1], kind)
            assert await events_of(engine, call(), context) == first
        assert await engine.log.head() == 4
        await proved(engine)


async def test_the_whole_of_a_long_result_is_told_again(journal_url: str) -> None:
    async def long() -> str:
        return "ä" * 500_000

    async with staged(journal_url, long) as engine:
        await events_of(engine, call())
        again = await outcome_of(engine, call())
        assert isinstance(again, Executed)
        assert again.result == "ä" * 500_000


async def test_case_parse_10_two_calls_of_one_id_both_run(journal_url: str) -> None:
    scale = Scale()
    async with staged_engine(journal_url, scale_tool(scale)) as engine:
        for _ in range(2):
            first, second = [await outcome_of(engine, weigh(bay)) for bay in (1, 2)]
            assert isinstance(first, Executed)
            assert isinstance(second, Executed)
            assert (first.key, first.result) == ("m:k1", 11)
            assert (second.key, second.result) == ("m:k1#2", 22)
            assert (first.call_id, second.call_id) == ("k1", "k1")
        assert scale.runs == [1, 2]
        third = await outcome_of(engine, weigh(3))
        assert third.key == "m:k1#3"
        await proved(engine)


async def test_case_parse_11_an_id_of_an_earlier_turn_runs_again(journal_url: str) -> None:
    scale = Scale()
    async with staged_engine(journal_url, scale_tool(scale)) as engine:
        turns = [CallContext(user_id="u", message_id=f"m{turn}", conversation_id="c") for turn in (1, 2)]
        told = [await outcome_of(engine, weigh(bay, "call_0"), turn) for bay, turn in enumerate(turns, 1)]
        again = await outcome_of(engine, weigh(2, "call_0"), turns[1])
        earlier = await outcome_of(engine, weigh(1, "call_0"), turns[0])
        assert [event.result for event in told if isinstance(event, Executed)] == [11, 22]
        assert [again, earlier] == [told[1], told[0]]
        assert scale.runs == [1, 2]


async def test_a_bare_id_is_no_proof_of_a_repetition(journal_url: str) -> None:
    scale = Scale()
    async with staged_engine(journal_url, scale_tool(scale)) as engine:
        told = [await outcome_of(engine, weigh(1), bare) for _ in range(3)]
        assert [event.key for event in told] == ["k1", "k1#2", "k1#3"]
        assert scale.runs == [1, 1, 1]
        assert (await row_of(engine, "k1#2")).status == "confirmed"
        await proved(engine)


async def test_a_bare_id_that_waits_is_the_same_call(sqlite_url: str) -> None:
    async def never() -> None:
        raise AssertionError("it needs approval")

    async with staged(sqlite_url, never, metadata={"require_approval": True}) as engine:
        first = await events_of(engine, call(), bare)
        assert await events_of(engine, call(), bare) == first


async def first_event(stream: Any) -> StreamEvent:
    event: StreamEvent = await anext(stream)
    return event


async def run_beside(engine: Engine, wanted: Any, told: list[StreamEvent], context: CallContext = CONTEXT) -> None:
    told.extend(await events_of(engine, wanted, context))


@pytest.mark.parametrize("context", [CONTEXT, bare])
async def test_a_running_call_is_not_run_beside_itself(journal_url: str, context: CallContext) -> None:
    scale = Scale()
    scale.hold()
    told: list[StreamEvent] = []
    async with staged_engine(journal_url, scale_tool(scale)) as engine:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_beside, engine, weigh(1), told, context)
            await scale.held.wait()
            for number in (1, 2):
                proposed, denied = await events_of(engine, weigh(1), context)
                assert isinstance(proposed, Proposed)
                assert isinstance(denied, Denied)
                assert (denied.reason, denied.key) == ("duplicate", f"{told_key(context)}~d{number}")
                assert (proposed.key, proposed.call_id) == (denied.key, "k1")
                assert (await row_of(engine, denied.key)).duplicate
            scale.open.set()
        assert scale.runs == [1]
        assert isinstance(told[1], Executed)
        assert (await row_of(engine, told_key(context))).status in ("executed", "confirmed")
        await proved(engine)


def told_key(context: CallContext) -> str:
    return "k1" if context.message_id is None else f"{context.message_id}:k1"


async def test_a_call_that_another_engine_runs_is_denied(journal_url: str) -> None:
    scale = Scale()
    scale.hold()
    told: list[StreamEvent] = []
    async with AsyncExitStack() as stack:
        one, two = [await stack.enter_async_context(staged_engine(journal_url, scale_tool(scale))) for _ in range(2)]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_beside, one, weigh(1), told)
            await scale.held.wait()
            denied = await outcome_of(two, weigh(1))
            assert isinstance(denied, Denied)
            assert (denied.reason, denied.key) == ("duplicate", "m:k1~d1")
            scale.open.set()
        assert await events_of(two, weigh(1)) == told
        assert scale.runs == [1]
        await proved(two)


async def test_a_call_whose_worker_died_is_orphaned(journal_url: str) -> None:
    scale = Scale()
    scale.hold()
    told: list[StreamEvent] = []
    async with AsyncExitStack() as stack:
        one, two = [await stack.enter_async_context(staged_engine(journal_url, scale_tool(scale))) for _ in range(2)]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_beside, one, weigh(1), told)
            await scale.held.wait()
            await declare_dead(one)
            opening, closed = await events_of(two, weigh(1))
            assert isinstance(closed, Failed)
            assert closed.kind == "orphaned"
            assert "not known" in closed.message
            assert opening == (await stream_of(two, "m:k1"))[0]
            # The worker was slow, not dead: what it says later is kept, and changes nothing.
            scale.open.set()
        assert told == [opening, closed]
        *_, late = await stream_of(one, "m:k1")
        assert isinstance(late, LateOutcome)
        assert isinstance(late.outcome, Executed)
        assert late.outcome.result == 11
        row = await row_of(one, "m:k1")
        assert (row.status, row.late) == ("failed", True)
        assert scale.runs == [1]
        await proved(one)


async def test_an_idempotent_call_of_a_dead_worker_is_taken_over(journal_url: str) -> None:
    scale = Scale()
    scale.hold()
    told: list[StreamEvent] = []
    tool = scale_tool(scale, idempotent=True)
    async with AsyncExitStack() as stack:
        one, two = [await stack.enter_async_context(staged_engine(journal_url, tool)) for _ in range(2)]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_beside, one, weigh(1), told)
            await scale.held.wait()
            await declare_dead(one)
            opening, executed = await events_of(two, weigh(1))
            assert isinstance(executed, Executed)
            assert executed.result == 11
            assert opening == (await stream_of(two, "m:k1"))[0]
            scale.open.set()
        # The slow one comes to the same end, and its own outcome is kept beside it.
        assert told == [opening, executed]
        row = await row_of(one, "m:k1")
        assert (row.status, row.late) == ("executed", True)
        assert scale.runs == [1, 1]
        await proved(one)


async def test_what_the_gate_would_stop_now_is_not_taken_over(journal_url: str) -> None:
    """An idempotent call of a dead worker does not slip past an approval that was required since."""
    scale = Scale()
    scale.hold()
    gated = scale_tool(scale, idempotent=True, metadata={"require_approval": True})
    async with (
        staged_engine(journal_url, scale_tool(scale, idempotent=True)) as one,
        staged_engine(journal_url, gated) as two,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(run_beside, one, weigh(1), [])
        await scale.held.wait()
        await declare_dead(one)
        failed = await outcome_of(two, weigh(1))
        assert isinstance(failed, Failed)
        assert failed.kind == "orphaned"
        scale.open.set()
    assert scale.runs == [1]


async def test_a_bare_call_of_a_dead_worker_is_closed_and_the_next_runs(journal_url: str) -> None:
    scale = Scale()
    scale.hold()
    async with (
        staged_engine(journal_url, scale_tool(scale)) as one,
        staged_engine(journal_url, scale_tool(scale)) as two,
    ):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_beside, one, weigh(1), [], bare)
            await scale.held.wait()
            await declare_dead(one)
            executed = await outcome_of(two, weigh(1), bare)
            assert isinstance(executed, Executed)
            assert executed.key == "k1#2"
            assert (await row_of(two, "k1")).status == "failed"
            scale.open.set()
        await proved(two)


async def test_two_engines_at_the_same_instant_run_it_once(journal_url: str) -> None:
    scale = Scale()
    async with AsyncExitStack() as stack:
        engines = [await stack.enter_async_context(staged_engine(journal_url, scale_tool(scale))) for _ in range(2)]
        for number in range(10):
            told: list[StreamEvent] = []
            async with anyio.create_task_group() as tasks:
                for engine in engines * 2:
                    tasks.start_soon(run_beside, engine, weigh(number, f"k{number}"), told)
            executed = {event.key for event in told if isinstance(event, Executed)}
            assert executed == {f"m:k{number}"}
            assert all(event.reason == "duplicate" for event in told if isinstance(event, Denied))
            assert not [event for event in told if isinstance(event, Failed)]
        assert sorted(scale.runs) == list(range(10))
        await proved(engines[0])


async def test_equal_calls_of_other_tenants_never_meet(journal_url: str) -> None:
    scale = Scale()
    tenants = [None, "", "u", "U", "uu", "u "]
    rows = [ToolRow(id="t1", name="counter")]
    async with staged_engine(journal_url, scale_tool(scale), rows=rows) as engine:
        for context in (CONTEXT, CallContext(run_id="r"), bare):
            for tenant in tenants:
                event = await outcome_of(engine, weigh(1), replace(context, user_id=tenant))
                assert isinstance(event, Executed)
                assert "#" not in event.key
                assert (await row_of(engine, event.key, tenant)).user_id == tenant
        assert len(scale.runs) == 3 * len(tenants)
        await proved(engine)


async def test_equal_keys_of_different_calls_are_told_apart(journal_url: str) -> None:
    """Joined texts are not injective: ``a`` + ``b:c`` and ``a:b`` + ``c`` give one key."""
    scale = Scale()
    async with staged_engine(journal_url, scale_tool(scale)) as engine:
        first = await outcome_of(engine, weigh(1, "b:c"), CallContext(user_id="u", message_id="a"))
        second = await outcome_of(engine, weigh(1, "c"), CallContext(user_id="u", message_id="a:b"))
        third = await outcome_of(engine, weigh(1, "a:b:c"), bare)
        fourth = await outcome_of(engine, weigh(1, "c"), CallContext(user_id="u", run_id="a:b"))
        assert [event.key for event in (first, second, third, fourth)] == [
            "a:b:c",
            "a:b:c#2",
            "a:b:c#3",
            "a:b:c#4",
        ]
        assert len(scale.runs) == 4


async def test_a_call_whose_end_could_not_be_written_is_not_running(sqlite_url: str) -> None:
    """Within one engine too: what is no longer in flight is closed by its repetition, not refused for ever."""
    scale = Scale()
    async with staged_engine(sqlite_url, scale_tool(scale)) as engine:
        async with aclosing(engine.execute(weigh(1), CONTEXT)) as stream:
            opening = await first_event(stream)
            # What a lost database leaves behind: a proposal of this worker, and nobody who runs it.
            assert isinstance(opening, Proposed)
            lost = replace(opening, id="lost", key="m:k2", call_id="k2", position=None)
            await engine.log.append("m:k2", [lost], 0, "u")
        failed = await outcome_of(engine, weigh(1, "k2"))
        assert isinstance(failed, Failed)
        assert failed.kind == "orphaned"
        await proved(engine)
