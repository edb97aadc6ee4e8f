"""Calls that cannot run: names that lead nowhere, arguments that do not fit, ids that nothing stores."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from engine import ActionSettings, CallContext, Tool, ToolRow
from events import Failed, Proposed, Refused
from tests.engine.staging import (
    CONTEXT,
    Echo,
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


async def test_behaviour_082_083_malformed_arguments_blame_the_arguments(journal_url: str) -> None:
    async with staged(journal_url, answer) as engine:
        for number in range(4):
            failed = await outcome_of(engine, call("{not json", call_id=f"c{number}"))
            assert isinstance(failed, Failed)
            assert failed.kind == "invalid_arguments"
            assert "arguments" in failed.message
            assert "no tool named" not in failed.message
            assert "Callable tools: bump" in failed.message
            row = await row_of(engine, f"m:c{number}")
            assert (row.status, row.tool_name, row.action_name, row.tool_id) == ("failed", "counter", "bump", "t1")
            assert row.error == failed.message
            opening = (await stream_of(engine, f"m:c{number}"))[0]
            assert isinstance(opening, Proposed)
            assert opening.raw == "{not json"
        await proved(engine)


async def test_behaviour_086_an_unknown_name_lists_the_callable_ones(sqlite_url: str) -> None:
    async with staged(sqlite_url, answer) as engine:
        failed = await outcome_of(engine, call(name="note_view"))
        assert isinstance(failed, Failed)
        assert failed.kind == "unknown_tool"
        assert 'no tool named "note_view"' in failed.message
        assert "Callable tools: bump" in failed.message


async def test_behaviour_088_the_refused_name_is_never_listed(sqlite_url: str) -> None:
    async with staged(sqlite_url, answer) as engine:
        prepared = await engine.prepare_tools_for_llm(CONTEXT)
        gone = CallContext(user_id="u", message_id="m", tool_ids=())
        failed = await outcome_of(engine, call(name="bump"), gone, prepared)
        assert isinstance(failed, Failed)
        assert failed.message.endswith("(none)")


async def test_behaviour_089_at_most_thirty_names_in_order(sqlite_url: str) -> None:
    class Many(Echo):
        name = "many"

        def get_actions_metadata(self) -> list[dict[str, Any]]:
            return [{"name": f"act{number:03}", "parameters": {}} for number in reversed(range(150))]

    async with staged_engine(sqlite_url, Many) as engine:
        context = CallContext(user_id="u", message_id="m", tool_ids=("t1",))
        failed = await outcome_of(engine, call(name="nothing"), context)
        assert isinstance(failed, Failed)
        listed = failed.message.partition("Callable tools: ")[2]
        assert listed == ", ".join(f"act{number:03}" for number in range(30)) + " and 120 more"
        assert len(failed.message) < 1000


async def test_behaviour_090_only_this_turns_names_are_listed(sqlite_url: str) -> None:
    tools = [tool_of(answer, name=name, action=f"do_{name}") for name in ("one", "two", "three", "four")]
    async with staged_engine(sqlite_url, *tools) as engine:
        prepared = await engine.prepare_tools_for_llm(CONTEXT)
        assert set(prepared.names) >= {"do_one", "do_two", "do_three", "do_four"}
        smaller = CallContext(user_id="u", message_id="m", tool_ids=("t3",))
        failed = await outcome_of(engine, call(name="nothing"), smaller, prepared)
        assert isinstance(failed, Failed)
        assert failed.message.endswith("Callable tools: do_three")
        withheld = await outcome_of(engine, call(name="do_one", call_id="c2"), smaller, prepared)
        assert isinstance(withheld, Failed)
        assert withheld.kind == "unknown_tool"


async def test_behaviour_091_names_without_preparation(sqlite_url: str) -> None:
    class Api(Echo):
        name = "api"
        actions_in_config = True

    rows = [
        ToolRow(id="t1", name="code_executor", user_id="u"),
        ToolRow(id="t2", name="x", user_id="u", actions=[ActionSettings(name="off", active=False)]),
        ToolRow(id="t3", name="api", user_id="u", config={"actions": {"fetch_invoice": {"body": {}}}}),
    ]
    tools: list[type[Tool]] = [
        tool_of(answer, name="code_executor", action="run_code"),
        tool_of(answer, name="x", action="off"),
        Api,
    ]
    async with staged_engine(sqlite_url, *tools, rows=rows) as engine:
        context = CallContext(user_id="u", message_id="m", tool_ids=("t1", "t2", "t3"))
        failed = await outcome_of(engine, call(name="nothing"), context)
        assert isinstance(failed, Failed)
        assert failed.message.endswith("Callable tools: fetch_invoice, run_code")


def test_behaviour_092_a_row_needs_an_id() -> None:
    for identity in ("", " ", None):
        with pytest.raises(Refused, match="needs an id"):
            ToolRow(id=identity, name="counter")  # type: ignore[arg-type]


async def test_behaviour_098_a_stale_name_is_unknown(sqlite_url: str) -> None:
    async with staged(sqlite_url, answer) as engine:
        prepared = await engine.prepare_tools_for_llm(CONTEXT)
        prepared.names["old_name"] = ("t1", "gone")
        failed = await outcome_of(engine, call(name="old_name"), CONTEXT, prepared)
        assert isinstance(failed, Failed)
        assert failed.kind == "unknown_tool"
        assert "old_name" in failed.message or "gone" in failed.message
        assert (await row_of(engine)).status == "failed"
        split = await outcome_of(engine, call(name="gone_7", call_id="c2"))
        assert isinstance(split, Failed)
        await proved(engine)


@pytest.mark.parametrize("name", ["secret_0", "secret"])
async def test_behaviour_099_an_inactive_action_never_runs(sqlite_url: str, name: str) -> None:
    ran: list[int] = []

    async def secret() -> None:
        ran.append(1)

    row = ToolRow(id="0", name="counter", user_id="u", actions=[ActionSettings(name="secret", active=False)])
    async with staged_engine(sqlite_url, tool_of(secret, action="secret"), rows=[row]) as engine:
        failed = await outcome_of(engine, call(name=name))
        assert isinstance(failed, Failed)
        assert failed.kind == "unknown_tool"
        assert ran == []


@pytest.mark.parametrize(("name", "action"), [("note_view", "note_view"), ("", "unknown"), (None, "unknown")])
async def test_behaviour_107_unresolved_calls_have_a_row(journal_url: str, name: str | None, action: str) -> None:
    async with staged(journal_url, answer) as engine:
        failed = await outcome_of(engine, call(name=name))
        assert isinstance(failed, Failed)
        assert failed.kind == ("unknown_tool" if name else "invalid_call")
        row = await row_of(engine)
        assert (row.status, row.tool_name, row.action_name, row.tool_id) == ("failed", "unknown", action, None)
        assert row.error == failed.message
        await proved(engine)


async def test_arguments_that_are_no_object_fail_before_the_tool(sqlite_url: str) -> None:
    async with staged(sqlite_url, answer) as engine:
        for number, sent in enumerate(("[]", "5", '"text"', '["a"]')):
            failed = await outcome_of(engine, call(sent, call_id=f"c{number}"))
            assert isinstance(failed, Failed)
            assert failed.kind == "invalid_arguments"


async def test_what_a_model_invents_never_breaks_the_journal(journal_url: str) -> None:
    """Names, ids and extras of any length and content are journalled."""
    deep: Any = []
    for _ in range(1000):
        deep = [deep]
    async with staged(journal_url, answer) as engine:
        for number, name in enumerate(("x" * 100_000, "a\x00b", "half \ud800", "\n", "é" * 5000)):
            failed = await outcome_of(
                engine, call(name=name, call_id=f"c{number}\x00", extra={"deep": deep, "half": "\udfff"})
            )
            assert isinstance(failed, Failed)
            assert len(failed.message) < 1000
            await row_of(engine, f"m:c{number}")
        await proved(engine)


async def test_ids_of_the_caller_that_no_database_stores_are_refused(journal_url: str) -> None:
    async with staged(journal_url, answer) as engine:
        for field in ("user_id", "message_id", "run_id", "conversation_id", "agent_id"):
            with pytest.raises(Refused, match="NUL"):
                await events_of(engine, call(), replace(CONTEXT, **{field: "a\x00b"}))
            with pytest.raises(Refused, match="surrogate"):
                await events_of(engine, call(), replace(CONTEXT, **{field: "\ud800"}))
        assert await engine.log.head() == 0
