"""Tools that say themselves that they cannot work at present: no turn has them while they say so."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any

import anyio
import pytest

import engine.availability
from engine import ActionSettings, CallContext, ToolRow
from engine.contract import Tool
from engine.services import Services
from events import Executed, Failed, Paused
from tests.engine.gating import paused, resumed
from tests.engine.staging import call, outcome_of, staged_engine, tool_of

__all__ = ()

pytestmark = pytest.mark.anyio

CONTEXT = CallContext(user_id="u", message_id="m")


class Clockwork:
    """A monotonic clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clockwork:
    clockwork = Clockwork()
    monkeypatch.setattr(engine.availability, "monotonic", clockwork)
    return clockwork


class State:
    """What a tool says of itself, and how often it was asked."""

    def __init__(self) -> None:
        self.says: Any = None
        self.asked = 0
        self.services: Services | None = None


def telling(state: State, *, is_async: bool, name: str = "counter", **attributes: Any) -> type[Tool]:
    def said(services: Services) -> Any:
        state.asked += 1
        state.services = services
        if isinstance(state.says, BaseException):
            raise state.says
        return state.says

    async def unavailable(cls: type[Tool], services: Services) -> Any:
        return said(services)

    def unavailable_now(cls: type[Tool], services: Services) -> Any:
        return said(services)

    hook = classmethod(unavailable) if is_async else classmethod(unavailable_now)
    return tool_of(lambda: "done", name=name, action=name, unavailable=hook, **attributes)


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
async def test_it_comes_and_goes_with_what_it_says(sqlite_url: str, clock: Clockwork, is_async: bool) -> None:
    state = State()
    tools = (telling(state, is_async=is_async), tool_of(lambda: "done", name="other", action="other"))
    async with staged_engine(sqlite_url, *tools) as opened:

        async def names(**facts: Any) -> list[str]:
            prepared = await opened.prepare_tools_for_llm(CallContext(user_id="u", **facts))
            return [name for name in prepared.names if name in ("counter", "other")]

        async def outcome(number: int) -> Any:
            return await outcome_of(opened, call(name="counter", call_id=f"c{number}"), CONTEXT)

        assert await names() == ["counter", "other"]
        assert isinstance(await outcome(1), Executed)
        assert (state.asked, state.services) == (1, opened._runtime.services)
        state.says = "its sandbox is down"
        clock.now += 29
        assert await names() == ["counter", "other"], "it was asked less than 30 s ago"
        clock.now += 2
        for facts in ({}, {"tool_ids": ("t1", "t2")}, {"agent_id": "a"}):
            assert await names(**facts) == ["other"], facts
        gone = await outcome(2)
        assert isinstance(gone, Failed)
        assert gone.kind == "unknown_tool"
        assert state.asked == 2
        for says, there in (
            (None, True),
            (RuntimeError("canary"), False),
            ("", True),
            (7, False),
            (None, True),
        ):
            state.says = says
            clock.now += 31
            assert await names() == (["counter", "other"] if there else ["other"]), says
        before = await opened.prepare_tools_for_llm(CallContext(user_id="u"))
        clock.now += 31
        assert await opened.prepare_tools_for_llm(CallContext(user_id="u")) is before, "nothing has changed"


async def test_one_that_does_not_answer_in_a_second_cannot_work(
    sqlite_url: str, clock: Clockwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine.availability, "_WITHIN", 0.05)
    released = threading.Event()

    async def never(cls: type[Tool], services: Services) -> None:
        await anyio.sleep_forever()

    def hangs(cls: type[Tool], services: Services) -> None:
        released.wait(20)

    hooks: dict[str, Any] = {"never": classmethod(never), "hangs": classmethod(hangs)}
    tools = [tool_of(lambda: 1, name=name, action=name, unavailable=hook) for name, hook in hooks.items()]
    try:
        async with staged_engine(sqlite_url, *tools) as opened:
            with anyio.fail_after(10):
                names = (await opened.prepare_tools_for_llm(CallContext(user_id="u"))).names
            assert not {"never", "hangs"} & set(names)
    finally:
        released.set()


async def test_one_that_hangs_leaves_the_others_their_threads(
    sqlite_url: str, clock: Clockwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    released, asked = threading.Event(), 0

    def hangs(cls: type[Tool], services: Services) -> None:
        nonlocal asked
        asked += 1
        released.wait(20)

    sound = State()
    stuck = tool_of(lambda: 1, name="stuck", action="stuck", unavailable=classmethod(hangs))
    try:
        async with staged_engine(sqlite_url, stuck, telling(sound, is_async=False)) as opened:
            for _ in range(engine.availability._THREADS + 1):
                monkeypatch.setattr(engine.availability, "_WITHIN", 0.05 if asked == 0 else 5)
                names = (await opened.prepare_tools_for_llm(CallContext(user_id="u"))).names
                clock.now += 31
                assert ("stuck" in names, "counter" in names) == (False, True)
    finally:
        released.set()
    assert asked == 1


async def test_a_cancellation_of_a_tool_s_own_making_is_a_reason_like_another(sqlite_url: str) -> None:
    async def unavailable(cls: type[Tool], services: Services) -> None:
        raise asyncio.CancelledError

    def unavailable_now(cls: type[Tool], services: Services) -> None:
        raise SystemExit(1)

    hooks: dict[str, Any] = {"one": classmethod(unavailable), "two": classmethod(unavailable_now), "three": None}
    tools = [tool_of(lambda: 1, name=name, action=name, unavailable=hook) for name, hook in hooks.items()]
    async with staged_engine(sqlite_url, *tools) as opened:
        names = (await opened.prepare_tools_for_llm(CallContext(user_id="u"))).names
        assert set(hooks) & set(names) == {"three"}


async def test_turns_at_one_time_ask_once_and_who_is_cancelled_spoils_nothing(
    sqlite_url: str, clock: Clockwork
) -> None:
    asked, begun = 0, anyio.Event()

    async def unavailable(cls: type[Tool], services: Services) -> str | None:
        nonlocal asked
        asked += 1
        if asked == 1:
            begun.set()
            await anyio.sleep_forever()
        return None

    tool = tool_of(lambda: 1, name="counter", action="counter", unavailable=classmethod(unavailable))
    async with staged_engine(sqlite_url, tool) as opened:
        async with anyio.create_task_group() as group:
            group.start_soon(opened.prepare_tools_for_llm, CallContext(user_id="u"))
            await begun.wait()
            group.cancel_scope.cancel()
        found: list[bool] = []

        async def look(user_id: str) -> None:
            prepared = await opened.prepare_tools_for_llm(CallContext(user_id=user_id, tool_ids=("t1",)))
            found.append("counter" in prepared.names)

        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(look, f"u{number}")
        assert (found, asked) == ([True] * 5, 2)


async def test_while_one_turn_asks_the_others_go_by_what_was_said_before(sqlite_url: str, clock: Clockwork) -> None:
    asked, begun, answer = 0, anyio.Event(), anyio.Event()

    async def unavailable(cls: type[Tool], services: Services) -> str | None:
        nonlocal asked
        asked += 1
        if asked == 1:
            return None
        begun.set()
        await answer.wait()
        return "it is away"

    tool = tool_of(lambda: 1, name="counter", action="counter", unavailable=classmethod(unavailable))
    async with staged_engine(sqlite_url, tool) as opened:
        context = CallContext(user_id="u")
        assert "counter" in (await opened.prepare_tools_for_llm(context)).names
        clock.now += 31
        async with anyio.create_task_group() as group:
            group.start_soon(opened.prepare_tools_for_llm, context)
            await begun.wait()
            assert "counter" in (await opened.prepare_tools_for_llm(context)).names
            answer.set()
        assert "counter" not in (await opened.prepare_tools_for_llm(context)).names
        assert asked == 2


async def test_a_call_that_waits_while_it_goes_away_ends_as_it_does_today(sqlite_url: str, clock: Clockwork) -> None:
    """What was approved runs, and its tool says in its result what is wrong; a new call finds nothing."""
    state = State()
    tool = telling(state, is_async=True)
    asks = ToolRow(
        id="t2", name="counter", user_id="u", actions=[ActionSettings(name="counter", require_approval=True)]
    )
    async with staged_engine(sqlite_url, tool, rows=[asks]) as opened:
        assert isinstance(await paused(opened, call(name="counter"), CONTEXT), Paused)
        await opened.decide("m:c1", approve=True, by="ann", user_id="u")
        state.says = "it is away"
        clock.now += 31
        assert isinstance(await resumed(opened, "m:c1", CallContext(user_id="u")), Executed)
        again = await outcome_of(opened, call(name="counter", call_id="c2"), CONTEXT)
        assert isinstance(again, Failed)


async def test_duckduckgo_is_away_without_its_library(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [ToolRow(id="d", name="duckduckgo", user_id="u")]
    for missing in (False, True):
        if missing:
            monkeypatch.setitem(sys.modules, "ddgs", None)
        async with staged_engine(sqlite_url, rows=rows) as opened:
            names = (await opened.prepare_tools_for_llm(CallContext(user_id="u"))).names
            assert ("ddg_web_search" in names) is not missing
            listed = {each.name: each for each in await opened.rows.built_ins.list(user_id="u")}
            reason = listed["duckduckgo"].unavailable
            assert (reason is not None and "calljournal[search]" in reason) is missing
