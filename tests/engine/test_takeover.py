"""A claimed call whose worker died: run again if that is as good as once, else left to be closed."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any

import anyio
import msgspec
import pytest
from sqlalchemy import delete

from engine import CallContext, Engine, InputRequired, Tool, ToolContext
from events import Denied, Executed, Failed, Refused, Resumed
from events.schema import leases
from events.types import StreamEvent
from tests.engine.cancelling import CANCELLERS, cut_at
from tests.engine.gating import APPROVED_FIRST, NUMBER, paused, resumed, submitted
from tests.engine.staging import call, events_of, proved, row_of, staged_engine, stream_of, tool_of

__all__ = ()

pytestmark = pytest.mark.anyio

approve = partial(Engine.decide, approve=True, by="alice", user_id="u")


async def declare_dead(engine: Engine) -> None:
    """Take an engine's lease away: as if it had been silent for half a minute."""
    await engine.log.store.write([delete(leases).where(leases.c.worker == engine.statistics().worker)])


class Slow:
    """A tool that is held open, then runs on."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.held = anyio.Event()
        self.open = anyio.Event()

    async def run(self, context: ToolContext, n: int = 0) -> str:
        self.runs.append(context.idempotency_key)
        if len(self.runs) == 1:
            self.held.set()
            await self.open.wait()
        return "done"


@pytest.mark.parametrize("idempotent", [True, False])
async def test_only_an_idempotent_call_of_a_dead_worker_is_taken_over(journal_url: str, idempotent: bool) -> None:
    slow = Slow()
    tool = tool_of(slow.run, wants_context=True, idempotent=idempotent, metadata=APPROVED_FIRST)
    async with staged_engine(journal_url, tool) as one, staged_engine(journal_url, tool) as two:
        await paused(one, call())
        await approve(one, "m:c1")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(resumed, one)
            await slow.held.wait()
            with pytest.raises(Refused, match="a live worker runs it"):
                await resumed(two)
            with pytest.raises(Refused, match="a live worker runs it"):
                await resumed(one)
            await declare_dead(one)
            if idempotent:
                executed = await resumed(two)
                assert isinstance(executed, Executed)
                claims = [event for event in await stream_of(two) if isinstance(event, Resumed)]
                assert [claim.takeover for claim in claims] == [False, True]
                assert slow.runs == ["m:c1", "m:c1"]
            else:
                with pytest.raises(Refused, match="may have had its effect"):
                    await resumed(two)
                assert slow.runs == ["m:c1"]
            slow.open.set()
        row = await row_of(two)
        assert (row.status, row.late) == ("executed", idempotent)
        await proved(two)


async def test_a_takeover_never_slips_past_a_changed_definition(journal_url: str) -> None:
    facts: dict[str, Any] = {"wants_context": True, "metadata": APPROVED_FIRST}
    change: dict[str, Any]
    for change in ({"parameters": NUMBER, "idempotent": True}, {"idempotent": False}):
        slow = Slow()
        async with (
            staged_engine(journal_url, tool_of(slow.run, idempotent=True, **facts)) as one,
            staged_engine(journal_url, tool_of(slow.run, **facts, **change)) as two,
        ):
            turn = CallContext(user_id="u", message_id=f"m{len(change)}")
            await paused(one, call(), turn)
            key = f"{turn.message_id}:c1"
            await approve(one, key)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(resumed, one, key)
                await slow.held.wait()
                await declare_dead(one)
                failed = await resumed(two, key)
                assert isinstance(failed, Failed)
                assert failed.kind == "orphaned"
                slow.open.set()
            assert slow.runs == [key]
            await proved(two)


async def test_an_idempotent_claimed_call_sent_again_is_taken_over(journal_url: str) -> None:
    """The model's retry, not a resume: it runs with the arguments that were approved, under its own claim."""
    slow = Slow()
    tool = tool_of(slow.run, wants_context=True, idempotent=True, parameters=NUMBER, metadata=APPROVED_FIRST)
    async with staged_engine(journal_url, tool) as one, staged_engine(journal_url, tool) as two:
        await paused(one, call({"n": 1}))
        await approve(one, "m:c1", arguments={"n": 2})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(resumed, one)
            await slow.held.wait()
            assert isinstance(await outcome_of_repetition(two, 1), Denied)
            await declare_dead(one)
            executed = await outcome_of_repetition(two, 1)
            assert isinstance(executed, Executed)
            assert executed.resolved == {"parameters": {"n": 2}}
            slow.open.set()
        assert slow.runs == ["m:c1", "m:c1"]
        claims = [event for event in await stream_of(two) if isinstance(event, Resumed)]
        assert [claim.takeover for claim in claims] == [False, True]
        await proved(two)


async def outcome_of_repetition(engine: Engine, n: int) -> StreamEvent:
    opening, event = await events_of(engine, call({"n": n}))
    assert opening.key == event.key
    return event


async def test_a_claimed_call_that_may_not_run_again_is_orphaned_by_its_repetition(journal_url: str) -> None:
    slow = Slow()
    tool = tool_of(slow.run, wants_context=True, parameters=NUMBER, metadata=APPROVED_FIRST)
    async with staged_engine(journal_url, tool) as one, staged_engine(journal_url, tool) as two:
        await paused(one, call({"n": 1}))
        await approve(one, "m:c1")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(resumed, one)
            await slow.held.wait()
            await declare_dead(one)
            failed = await outcome_of_repetition(two, 1)
            assert isinstance(failed, Failed)
            assert failed.kind == "orphaned"
            slow.open.set()
        assert slow.runs == ["m:c1"]
        assert (await row_of(two)).late
        await proved(two)


async def test_of_many_repetitions_one_takes_over(journal_url: str) -> None:
    slow = Slow()
    told: list[StreamEvent] = []

    async def again(engine: Engine) -> None:
        told.extend(await events_of(engine, call({"n": 1})))

    tool = tool_of(slow.run, wants_context=True, idempotent=True, parameters=NUMBER, metadata=APPROVED_FIRST)
    async with (
        staged_engine(journal_url, tool) as one,
        staged_engine(journal_url, tool) as two,
        staged_engine(journal_url, tool) as three,
    ):
        await paused(one, call({"n": 1}))
        await approve(one, "m:c1")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(resumed, one)
            await slow.held.wait()
            await declare_dead(one)
            async with anyio.create_task_group() as repetitions:
                for engine in (two, three) * 4:
                    repetitions.start_soon(again, engine)
            slow.open.set()
        assert slow.runs == ["m:c1", "m:c1"]
        assert all(event.reason == "duplicate" for event in told if isinstance(event, Denied))
        assert not any(isinstance(event, Failed) for event in told)
        await proved(two)


class Hesitant:
    """A tool that asks for a name; given one, its first run hangs."""

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.held = anyio.Event()
        self.open = anyio.Event()

    async def run(self, context: ToolContext) -> Any:
        if context.answer is msgspec.UNSET:
            return InputRequired({"question": "which?"})
        self.answers.append((context.request, context.answer))
        if len(self.answers) == 1:
            self.held.set()
            await self.open.wait()
        return context.answer


@pytest.mark.parametrize("way", ["again", "resume"])
async def test_an_answer_outlives_the_worker_that_took_it(journal_url: str, way: str) -> None:
    hesitant = Hesitant()
    tool = tool_of(hesitant.run, wants_context=True, idempotent=True)
    async with staged_engine(journal_url, tool) as one, staged_engine(journal_url, tool) as two:
        await events_of(one, call())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(submitted, one, "Ann")
            await hesitant.held.wait()
            await declare_dead(one)
            executed = (await events_of(two, call()))[1] if way == "again" else await resumed(two)
            assert isinstance(executed, Executed)
            assert executed.result == "Ann"
            hesitant.open.set()
        assert hesitant.answers == [({"question": "which?"}, "Ann")] * 2
        await proved(two)


async def test_who_is_cancelled_while_another_claims_leaves_that_alone(sqlite_url: str) -> None:
    """Two workers resume; the slower one, cancelled at whatever await, must not close the faster one's call."""
    asked: dict[str, int] = defaultdict(int)
    running: dict[str, anyio.Event] = defaultdict(anyio.Event)
    go_on = anyio.Event()

    async def run(context: ToolContext, n: int) -> None:
        running[context.idempotency_key].set()
        await go_on.wait()

    async def preview(self: Tool, name: str, arguments: dict[str, Any]) -> tuple[bool, bool]:
        key = f"m{arguments['n']}:c1"
        asked[key] += 1
        if asked[key] == 2:
            # The slower one's: from here on the faster one has it.
            tasks.start_soon(resumed, one, key)
            await running[key].wait()
        return True, False

    tool = tool_of(run, wants_context=True, parameters=NUMBER, preview_decision=preview)
    async with staged_engine(sqlite_url, tool) as one, staged_engine(sqlite_url, tool) as two:
        for at in range(1, 60):
            await paused(one, call({"n": at}), CallContext(user_id="u", message_id=f"m{at}"))
            await approve(one, f"m{at}:c1")

        async def work(at: int) -> None:
            with pytest.raises(Refused):
                await resumed(two, f"m{at}:c1")

        async def check(at: int) -> None:
            taken = asked[f"m{at}:c1"] > 1
            if taken:
                await running[f"m{at}:c1"].wait()
            row = await row_of(one, f"m{at}:c1")
            assert (row.status, row.gate) == ("proposed", "claimed" if taken else "approved")

        async with anyio.create_task_group() as tasks:
            assert await cut_at(CANCELLERS["scope"], work, check) > 6
            go_on.set()
        await proved(one)
