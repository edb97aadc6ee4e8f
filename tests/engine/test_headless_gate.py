"""Runs that nobody watches: what would wait is denied, with a word for the model (BEHAVIOUR 4)."""

from __future__ import annotations

from typing import Any

import pytest

from engine import CallContext, Engine, InputRequired, Tool, ToolRow
from events import Denied, Executed, Failed, Paused, Proposed
from events.types import StreamEvent
from tests.engine.gating import APPROVED_FIRST, Device, Executor, command, device_row, headless
from tests.engine.staging import (
    CONTEXT,
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


async def answer() -> str:
    return "Tool result"


async def never(**kwargs: Any) -> str:
    raise AssertionError(f"it is denied, and was run with {kwargs}")


def unwatched(*allowed: str | int, message: str = "h", **facts: Any) -> CallContext:
    return CallContext(user_id="u", message_id=message, headless=True, tool_allowlist=frozenset(allowed), **facts)


async def test_behaviour_060_nobody_is_there_to_execute_or_approve(journal_url: str) -> None:
    tool = {"name": "write_file", "parameters": {}}
    async with staged(journal_url, never, metadata=APPROVED_FIRST) as engine:
        for number, (name, context) in enumerate(
            [("write_file", unwatched("ct0", client_tools=(tool,))), ("bump", headless)]
        ):
            proposed, denied = await events_of(engine, call({}, name=name, call_id=f"c{number}"), context)
            assert isinstance(proposed, Proposed)
            assert proposed.headless
            assert isinstance(denied, Denied)
            assert denied.reason == "headless"
            assert "was not run" in denied.message
        answers = await engine.tool_results("h", user_id="u")
        assert ["was not run" in answer["content"] for answer in answers] == [True, True]
        await proved(engine)


@pytest.mark.parametrize("entry", ["7", 7])
async def test_behaviour_061_an_allowlisted_row_runs(journal_url: str, entry: str | int) -> None:
    rows = [ToolRow(id="7", name="counter", user_id="u")]
    async with staged_engine(journal_url, tool_of(answer, metadata=APPROVED_FIRST), rows=rows) as engine:
        assert isinstance(await outcome_of(engine, call(), unwatched(entry)), Executed)
        other = await outcome_of(engine, call(), unwatched("8", 70, "counter", message="i"))
        assert isinstance(other, Denied)


async def test_an_allowlist_opens_nothing_while_somebody_watches(journal_url: str) -> None:
    context = CallContext(user_id="u", message_id="m", tool_allowlist=frozenset({"t1"}))
    async with staged(journal_url, never, metadata=APPROVED_FIRST) as engine:
        assert isinstance(await outcome_of(engine, call(), context), Paused)


@pytest.mark.parametrize("mode", ["ask", "full"])
async def test_behaviour_063_a_denylist_beats_the_allowlist(journal_url: str, mode: str) -> None:
    async with staged_engine(journal_url, Device, rows=[device_row(mode=mode)]) as engine:
        denied = await outcome_of(engine, command("rm -rf /"), unwatched("7"))
        assert isinstance(denied, Denied)
        assert (denied.reason, denied.rule) == ("denylist", "denylist")
        assert (await row_of(engine, "h:c1")).status == "denied"
        assert isinstance(await outcome_of(engine, command("whoami", "c2"), unwatched("7")), Executed)
        await proved(engine)


async def test_a_tool_that_cannot_be_asked_is_not_opened_by_an_allowlist(journal_url: str) -> None:
    row = ToolRow(id="7", name="code_executor", config={"says": RuntimeError("away")})
    async with staged_engine(journal_url, Executor, rows=[row]) as engine:
        denied = await outcome_of(engine, call({}, name="run_code"), unwatched("7"))
        assert isinstance(denied, Denied)
        assert (denied.reason, denied.rule) == ("headless", "live_gate_failed")
        await proved(engine)


async def test_behaviour_065_066_a_denied_call_holds_up_no_other(journal_url: str) -> None:
    tools = [tool_of(never, name="a", action="a", metadata=APPROVED_FIRST), tool_of(answer, name="b", action="b")]
    told: list[StreamEvent] = []
    async with staged_engine(journal_url, *tools) as engine:
        calls = [call(name="a", call_id="c1"), call(name="b", call_id="c2")]
        async with engine.execute_all(calls, headless) as events:
            told.extend([event async for event in events])
        assert [type(event) for event in told if event.call_id == "c1"] == [Proposed, Denied]
        assert [type(event) for event in told if event.call_id == "c2"] == [Proposed, Executed]
        first, second = await engine.tool_results("h", user_id="u")
        assert "nobody watches this run" in first["content"]
        assert second["content"] == "Tool result"
        row = await row_of(engine, "h:c1")
        assert row.status == "denied"
        assert row.error is not None
        assert row.error.startswith("headless: ")
        assert (await row_of(engine, "h:c2")).status == "executed"
        await proved(engine)


async def schedule() -> str:
    return "scheduled"


async def names_of(engine: Engine, context: CallContext) -> list[str]:
    return sorted((await engine.prepare_tools_for_llm(context)).names)


def scheduler(**facts: Any) -> type[Tool]:
    return tool_of(schedule, name="scheduler", action="schedule", headless_allowed=False, **facts)


async def test_behaviour_067_what_may_not_be_headless_is_absent(sqlite_url: str) -> None:
    stored = ToolRow(id="s1", name="scheduler", user_id="u")
    for tool, rows, facts in (
        (scheduler(default_on=True), [], {}),
        (scheduler(), [stored], {}),
        (scheduler(), [stored], {"agent_id": "g", "tool_ids": ("s1",)}),
        (scheduler(), [stored], {"tool_ids": ("s1",)}),
    ):
        async with staged_engine(sqlite_url, tool, rows=rows) as engine:
            watched = CallContext(user_id="u", **facts)
            alone = CallContext(user_id="u", headless=True, **facts)
            assert "schedule" in await names_of(engine, watched)
            assert "schedule" not in await names_of(engine, alone)


async def test_behaviour_068_which_rows_a_turn_has(sqlite_url: str) -> None:
    tools = [tool_of(answer), tool_of(schedule, name="scheduler", action="schedule", default_on=True)]
    rows = [ToolRow(id="t1", name="counter", user_id="u")]
    async with staged_engine(sqlite_url, *tools, rows=rows) as engine:
        assert await names_of(engine, CallContext(user_id="u", agent_id="g", tool_ids=())) == []
        assert await names_of(engine, CallContext(user_id="u", tool_ids=())) == []
        assert {"bump", "schedule"} <= set(await names_of(engine, CallContext(user_id="u")))
        assert await names_of(engine, CallContext(user_id="u", agent_id="g")) == ["bump"]
        assert "bump" not in await names_of(engine, CallContext(user_id="v"))


async def test_behaviour_069_an_allowlisted_device_that_is_away_says_so_itself(journal_url: str) -> None:
    async with staged_engine(journal_url, Device, rows=[device_row(device="inactive")]) as engine:
        executed = await outcome_of(engine, command("whoami"), unwatched("7"))
        assert isinstance(executed, Executed)
        assert executed.status == "error"
        await proved(engine)


async def test_a_tool_that_asks_for_input_fails_where_nobody_can_give_it(journal_url: str) -> None:

    async def ask() -> InputRequired:
        return InputRequired({"question": "which?"})

    async with staged(journal_url, ask) as engine:
        failed = await outcome_of(engine, call(), headless)
        assert isinstance(failed, Failed)
        assert "nobody watches" in failed.message
        assert [type(event) for event in await stream_of(engine, "h:c1")] == [Proposed, Failed]
        assert isinstance(await outcome_of(engine, call(), CONTEXT), Paused)
        await proved(engine)
