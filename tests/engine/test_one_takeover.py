"""An idempotent call wanted many times at once: it runs once, and once in whoever takes it over from the dead."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

import anyio
import pytest

from engine import ToolContext
from events import Denied, Executed
from events.types import StreamEvent
from tests.engine.staging import call, events_of, proved, staged_engine, tool_of
from tests.engine.test_takeover import declare_dead

__all__ = ()

pytestmark = pytest.mark.anyio

TIMES = 5


class Held:
    """A tool whose runs are all held open."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.began = anyio.Event()
        self.open = anyio.Event()

    async def run(self, context: ToolContext) -> str:
        self.runs.append(context.idempotency_key)
        self.began.set()
        await self.open.wait()
        return "done"


async def test_one_worker_runs_it_once_at_a_time(journal_url: str) -> None:
    dead, held = Held(), Held()
    facts: dict[str, Any] = {"wants_context": True, "idempotent": True}
    told: list[list[StreamEvent]] = []

    async def again() -> None:
        told.append(await events_of(two, call()))
        if len(told) == TIMES - 1:
            held.open.set()

    async with (
        staged_engine(journal_url, tool_of(dead.run, **facts)) as one,
        staged_engine(journal_url, tool_of(held.run, **facts)) as two,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(events_of, one, call())
        await dead.began.wait()
        await declare_dead(one)
        with anyio.fail_after(20):
            async with anyio.create_task_group() as repetitions:
                for _ in range(TIMES):
                    repetitions.start_soon(again)
        assert held.runs == ["m:c1"]
        outcomes = [events[-1] for events in told]
        assert [type(outcome) for outcome in outcomes] == [Denied] * (TIMES - 1) + [Executed]
        assert {outcome.key for outcome in outcomes} == {"m:c1", *(f"m:c1~d{n}" for n in range(1, TIMES))}
        dead.open.set()
        await proved(two)


class Interrupted(Awaitable[None]):
    """A coroutine that goes on after its ``at``-th suspension only when ``between`` has come to its end.

    :ivar reached: whether there was such a suspension
    """

    def __init__(self, work: Coroutine[Any, Any, None], at: int, between: Callable[[], Awaitable[None]]) -> None:
        self._work = work
        self._at = at
        self._between = between
        self.reached = False

    def __await__(self) -> Generator[Any, Any, None]:
        steps, count, answer = self._work.__await__(), 0, None
        while True:
            try:
                asked = steps.send(answer)
            except StopIteration:
                return
            count += 1
            answer = yield asked
            if count == self._at:
                self.reached = True
                yield from self._between().__await__()


async def repeated_while_it_ends(url: str, at: int) -> bool:
    """Repeat a call whose worker ends it, and then itself, at the repetition's ``at``-th await; False: it has fewer."""
    held, gone = Held(), anyio.Event()
    tool = tool_of(held.run, wants_context=True, idempotent=True)
    wanted = call(call_id=f"c{at}")
    told: list[StreamEvent] = []

    async def first() -> None:
        async with staged_engine(url, tool) as one:
            told.extend(await events_of(one, wanted))
        gone.set()

    async def end() -> None:
        held.open.set()
        await gone.wait()

    async def again() -> None:
        outcome = (await events_of(two, wanted))[-1]
        assert isinstance(outcome, Denied) or outcome in told

    async with staged_engine(url, tool) as two, anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        await held.began.wait()
        repetition = Interrupted(again(), at, end)
        await repetition
        held.open.set()
    assert held.runs == [f"m:c{at}"]
    return repetition.reached


async def test_what_ends_meanwhile_is_not_taken_over(journal_url: str) -> None:
    """At every await of the repetition: whatever it had read by then, the call did not run again."""
    at = 1
    while await repeated_while_it_ends(journal_url, at):
        at += 1
    assert at > 3
