"""``execute_all``: a turn's parallel calls, their events as they happen, none holding up another."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from engine import CallContext, Engine, Limits, Settings, ToolCall
from events import Denied, Executed, Failed, Paused, Proposed, Refused
from events.types import StreamEvent
from tests.engine.gating import APPROVED_FIRST, NUMBER, headless
from tests.engine.staging import (
    CONTEXT,
    bare,
    call,
    events_of,
    proved,
    row_of,
    staged,
    staged_engine,
    stream_of,
    tool_of,
)

__all__ = ()

pytestmark = pytest.mark.anyio


async def told_by(engine: Engine, calls: list[ToolCall], context: CallContext = CONTEXT) -> list[StreamEvent]:
    async with engine.execute_all(calls, context) as events:
        return [event async for event in events]


def numbered(count: int, **facts: Any) -> list[ToolCall]:
    return [call({"n": number}, call_id=f"c{number}", **facts) for number in range(count)]


class Gauge:
    """Tools that count how many of them run at once, and in which order they began."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.ended: list[int] = []
        self.now = 0
        self.most = 0

    async def run(self, n: int) -> int:
        self.began.append(n)
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        self.now -= 1
        self.ended.append(n)
        return n


async def test_every_proposal_comes_first_and_in_order(journal_url: str) -> None:
    seen: list[int] = []

    async def look(n: int) -> int:
        seen.append(await engine.log.head())
        return n

    async with staged(journal_url, look, parameters=NUMBER) as engine:
        told = await told_by(engine, numbered(12))
        assert [event.call_id for event in told[:12]] == [f"c{number}" for number in range(12)]
        assert all(isinstance(event, Proposed) for event in told[:12])
        assert [event.position for event in told[:12]] == list(range(1, 13))
        assert min(seen) >= 12
        results = {event.call_id: event.result for event in told[12:] if isinstance(event, Executed)}
        assert results == {f"c{number}": number for number in range(12)}
        assert len(told) == 24
        await proved(engine)


@pytest.mark.parametrize("places", [1, 3, 8])
async def test_so_many_run_at_once_and_no_more(sqlite_url: str, places: int) -> None:
    gauge = Gauge()
    settings = Settings(limits=Limits(parallel=places))
    async with staged_engine(sqlite_url, tool_of(gauge.run, parameters=NUMBER), settings=settings) as engine:
        await told_by(engine, numbered(20))
        assert gauge.most == places
        assert sorted(gauge.ended) == list(range(20))
        assert places > 1 or gauge.began == list(range(20))


def test_eight_run_at_once() -> None:
    assert Limits().parallel == 8


async def test_a_serial_tool_runs_one_after_another_and_others_beside_it(sqlite_url: str) -> None:
    serial, free = Gauge(), Gauge()
    tools = [
        tool_of(serial.run, name="serial", action="serial", parameters=NUMBER, serial=True),
        tool_of(free.run, name="free", action="free", parameters=NUMBER),
    ]
    async with staged_engine(sqlite_url, *tools) as engine:
        calls = [call({"n": n}, call_id=f"{name}{n}", name=name) for n in range(6) for name in ("serial", "free")]
        told = await told_by(engine, calls)
        assert serial.most == 1
        assert serial.began == serial.ended == list(range(6))
        assert free.most > 1
        assert len([event for event in told if isinstance(event, Executed)]) == 12


async def test_a_serial_call_that_waits_lets_the_next_run(sqlite_url: str) -> None:
    gauge = Gauge()

    def ask(self: Any, name: str, arguments: dict[str, Any]) -> tuple[bool, bool]:
        return arguments["n"] == 1, False

    tool = tool_of(gauge.run, parameters=NUMBER, serial=True, preview_decision=ask)
    async with staged_engine(sqlite_url, tool) as engine:
        told = await told_by(engine, numbered(3))
        assert [event.call_id for event in told if isinstance(event, Paused)] == ["c1"]
        assert gauge.ended == [0, 2]


async def test_events_come_as_they_happen(journal_url: str) -> None:
    """The first call ends only once its consumer has seen the second one's end."""
    go_on = anyio.Event()

    async def first(n: int) -> int:
        await go_on.wait()
        return n

    async def second(n: int) -> int:
        return n

    tools = [tool_of(run, name=run.__name__, action=run.__name__, parameters=NUMBER) for run in (first, second)]
    async with staged_engine(journal_url, *tools) as engine:
        calls = [call({"n": n}, call_id=name, name=name) for n, name in enumerate(("first", "second"))]
        order: list[str] = []
        async with engine.execute_all(calls, CONTEXT) as events:
            async for event in events:
                if isinstance(event, Executed):
                    order.append(event.call_id)
                    assert (await stream_of(engine, event.key))[-1] == event
                    go_on.set()
        assert order == ["second", "first"]


async def test_what_waits_or_fails_holds_up_no_other(journal_url: str) -> None:
    async def fine(**kwargs: Any) -> str:
        return "fine"

    async def boom(**kwargs: Any) -> str:
        raise ValueError("boom")

    tools = [
        tool_of(fine, name="fine", action="fine"),
        tool_of(fine, name="gated", action="gated", metadata=APPROVED_FIRST),
        tool_of(boom, name="boom", action="boom"),
    ]
    context = CallContext(user_id="u", message_id="m", client_tools=({"name": "client"},))
    async with staged_engine(journal_url, *tools) as engine:
        names = ["gated", "boom", "nothing", "client", "fine"]
        told = await told_by(engine, [call({}, call_id=name, name=name) for name in names], context)
        ends = {event.call_id: type(event) for event in told if not isinstance(event, Proposed)}
        assert ends == {"gated": Paused, "boom": Failed, "nothing": Failed, "client": Paused, "fine": Executed}
        assert len(told) == 10
        await proved(engine)


async def test_case_execute_03_a_tool_that_cancels_itself_hurts_nobody(journal_url: str) -> None:
    async def probe() -> None:
        raise anyio.get_cancelled_exc_class()  # asyncio's; trio's cannot be made

    async def other() -> int:
        return 5

    async def halt() -> None:
        sys.exit(3)

    tools = [tool_of(run, name=run.__name__, action=run.__name__) for run in (probe, other, halt)]
    async with staged_engine(journal_url, *tools) as engine:
        told = await told_by(engine, [call(name=run, call_id=run) for run in ("probe", "other", "halt")])
        ends = {event.call_id: event for event in told if not isinstance(event, Proposed)}
        assert isinstance(ends["other"], Executed)
        assert ends["other"].result == 5
        assert isinstance(ends["probe"], Failed)
        assert isinstance(ends["halt"], Failed)
        assert len(told) == 6
        await proved(engine)


class Held:
    """A tool that says when it runs, and then hangs; ``quick`` ones return at once."""

    def __init__(self, running: int) -> None:
        self.left = running
        self.running = anyio.Event()

    async def run(self, n: int) -> int:
        if n == 0:
            return n
        self.left -= 1
        if not self.left:
            self.running.set()
        await anyio.sleep_forever()
        return n


async def ends_of(engine: Engine, count: int) -> list[str]:
    """Return how each of the numbered calls ended."""
    found = []
    for number in range(count):
        event = (await stream_of(engine, f"m:c{number}"))[-1]
        found.append(event.kind if isinstance(event, Failed) else type(event).__name__)
    return found


class Gone(Exception):
    """What a consumer raises."""


@pytest.mark.parametrize("way", ["break", "raise", "cancel", "timeout", "unread"])
async def test_who_leaves_early_leaves_nothing_open(journal_url: str, way: str) -> None:
    """Case 0 has ended, 1 and 2 run, 3 and 4 have no place yet."""
    held = Held(2)
    settings = Settings(limits=Limits(parallel=2))

    async def consume() -> None:
        async with engine.execute_all(numbered(5), CONTEXT) as events:
            if way == "unread":
                return
            async for event in events:
                if isinstance(event, Executed):
                    break
            await held.running.wait()
            match way:
                case "raise":
                    raise Gone
                case "cancel":
                    tasks.cancel_scope.cancel()
                case "timeout":
                    scope.cancel()
            await anyio.lowlevel.checkpoint()

    async with staged_engine(journal_url, tool_of(held.run, parameters=NUMBER), settings=settings) as engine:
        if way == "raise":
            with pytest.raises(Gone):
                await consume()
        else:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(consume)
        ends = await ends_of(engine, 5)
        assert ends[0] in (("Executed", "cancelled") if way == "unread" else ("Executed",))
        assert ends[1:] == ["cancelled"] * 4
        for number in (3, 4):
            failed = (await stream_of(engine, f"m:c{number}"))[-1]
            assert isinstance(failed, Failed)
            assert "was not run" in failed.message
        # Nothing is in flight any more: the same calls are told, not refused.
        assert isinstance((await events_of(engine, numbered(2)[1]))[1], Failed)
        await proved(engine)


async def test_the_consumers_error_is_its_own(sqlite_url: str) -> None:
    """No group around it, and no scope of ours left behind."""
    async with staged(sqlite_url, Gauge().run, parameters=NUMBER) as engine:
        with pytest.raises(Gone) as raised:
            async with engine.execute_all(numbered(3), CONTEXT):
                raise Gone
        assert raised.value.__context__ is None
        with anyio.fail_after(5):
            assert len(await told_by(engine, numbered(3))) == 6


async def test_an_empty_turn_has_no_events(sqlite_url: str) -> None:
    async with Engine.open(sqlite_url) as engine:
        assert await told_by(engine, []) == []


async def test_a_turn_again_is_told_and_runs_nothing(journal_url: str) -> None:
    gauge = Gauge()
    async with staged(journal_url, gauge.run, parameters=NUMBER) as engine:
        first = await told_by(engine, numbered(4))
        again = await told_by(engine, numbered(4))
        assert sorted(again, key=str) == sorted(first, key=str)
        assert sorted(gauge.began) == [0, 1, 2, 3]


async def test_two_parallel_calls_of_one_id(journal_url: str) -> None:
    """Providers give two calls one id: different ones both run, the very same call runs once."""
    gauge = Gauge()
    async with staged(journal_url, gauge.run, parameters=NUMBER) as engine:
        told = await told_by(engine, [call({"n": n}, call_id="k1") for n in (1, 2, 1)])
        assert sorted(event.key for event in told if isinstance(event, Executed)) == ["m:k1", "m:k1#2"]
        (denied,) = [event for event in told if isinstance(event, Denied)]
        assert (denied.reason, denied.key) == ("duplicate", "m:k1~d1")
        assert sorted(gauge.began) == [1, 2]
        contents = [answer["content"] for answer in await engine.tool_results("m", user_id="u")]
        assert contents == ["1", "2"]
        await proved(engine)


async def test_two_parallel_calls_of_one_bare_id(journal_url: str) -> None:
    gauge = Gauge()
    async with staged(journal_url, gauge.run, parameters=NUMBER) as engine:
        told = await told_by(engine, [call({"n": n}, call_id="k1") for n in (1, 2)], bare)
        assert sorted(event.key for event in told if isinstance(event, Executed)) == ["k1", "k1#2"]
        await proved(engine)


async def test_two_workers_in_the_same_millisecond(journal_url: str) -> None:
    """Whoever proposes a key first runs it; what the other says of it is a refusal, or the recorded outcome."""
    gauge = Gauge()
    told: list[StreamEvent] = []

    async def run(engine: Engine) -> None:
        told.extend(await told_by(engine, numbered(10)))

    async with AsyncExitStack() as stack:
        tool = tool_of(gauge.run, parameters=NUMBER)
        engines = [await stack.enter_async_context(staged_engine(journal_url, tool)) for _ in range(2)]
        async with anyio.create_task_group() as tasks:
            for engine in engines:
                tasks.start_soon(run, engine)
        assert sorted(gauge.began) == list(range(10))
        assert {event.key for event in told if isinstance(event, Executed)} == {f"m:c{n}" for n in range(10)}
        assert all(event.reason == "duplicate" for event in told if isinstance(event, Denied))
        assert not any(isinstance(event, Failed) for event in told)
        await proved(engines[0])


async def test_a_context_that_cannot_be_journalled_proposes_nothing(sqlite_url: str) -> None:
    async with staged(sqlite_url, Gauge().run, parameters=NUMBER) as engine:
        with pytest.raises(Refused, match="NUL"):
            await told_by(engine, numbered(2), CallContext(user_id="u", message_id="a\x00"))
        assert await engine.log.head() == 0


async def test_a_headless_turn_has_an_answer_for_every_call(journal_url: str) -> None:
    gauge = Gauge()
    tools = [
        tool_of(gauge.run, parameters=NUMBER),
        tool_of(gauge.run, name="gated", action="gated", parameters=NUMBER, metadata=APPROVED_FIRST),
    ]
    async with staged_engine(journal_url, *tools) as engine:
        await told_by(engine, [call({"n": 1}, call_id="c1", name="gated"), call({"n": 2}, call_id="c2")], headless)
        answers = await engine.tool_results("h", user_id="u")
        assert [answer["tool_call_id"] for answer in answers] == ["c1", "c2"]
        assert gauge.began == [2]
        assert (await row_of(engine, "h:c1")).status == "denied"
