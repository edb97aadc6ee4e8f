"""What pauses a call, and what does not (BEHAVIOUR 3)."""

from __future__ import annotations

from typing import Any

import pytest

from engine import ActionSettings, CallContext, Engine, Tool, ToolRow
from events import Executed, Failed, Paused, Proposed
from tests.engine.gating import APPROVED_FIRST, Device, Executor, command, device_row, paused
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

LIST = {"type": "object", "properties": {"n": {"type": "integer"}}}


async def answer() -> str:
    return "Tool result"


async def never(**kwargs: Any) -> str:
    raise AssertionError(f"it waits, and was run with {kwargs}")


WRITE_FILE = {
    "type": "function",
    "function": {
        "name": "write_file",
        "description": "Writes.",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
    },
}


@pytest.mark.parametrize("unwatched", [False, True])
async def test_behaviour_045_what_is_not_gated_does_not_pause(journal_url: str, unwatched: bool) -> None:
    context = CallContext(user_id="u", message_id="m", headless=unwatched)
    async with staged(journal_url, answer) as engine:
        prepared = await engine.prepare_tools_for_llm(context)
        prepared.names["elsewhere"] = ("t9", "bump")
        for number, name in enumerate(("nothing", "elsewhere", "bump")):
            event = await outcome_of(engine, call(name=name, call_id=f"c{number}"), context, prepared)
            assert isinstance(event, Executed if name == "bump" else Failed)
        await proved(engine)


async def test_behaviour_046_a_client_tool_waits_for_its_client(journal_url: str) -> None:
    context = CallContext(user_id="u", message_id="m", client_tools=(WRITE_FILE,))
    signed = call({"path": "a"}, name="write_file", extra={"thoughtSignature": "c2ln"})
    async with staged(journal_url, answer) as engine:
        pause = await outcome_of(engine, signed, context)
        assert isinstance(pause, Paused)
        assert pause.pause_type == "requires_client_execution"
        assert (pause.call_id, pause.llm_name, pause.tool_name) == ("c1", "write_file", "write_file")
        assert (pause.tool_id, pause.action_name, pause.arguments) == ("ct0", "write_file", {"path": "a"})
        assert pause.expires_at is not None
        (message,) = await engine.tool_results("m", user_id="u", family="google")
        (part,) = message["parts"]
        assert part["thoughtSignature"] == "c2ln"
        assert "no result has come back yet" in part["functionResponse"]["response"]["error"]
        await proved(engine)


async def test_behaviour_047_an_advertised_name_and_the_actions_own(journal_url: str) -> None:
    tools = [tool_of(never, name=name, action="delete", metadata=APPROVED_FIRST) for name in ("tool_a", "tool_b")]
    async with staged_engine(journal_url, *tools) as engine:
        pause = await paused(engine, call(name="tool_a_delete"))
        assert pause.pause_type == "awaiting_approval"
        assert (pause.llm_name, pause.action_name, pause.tool_name) == ("tool_a_delete", "delete", "tool_a")
        row = await row_of(engine)
        assert (row.gate, row.pause_type, row.rule) == ("paused", "awaiting_approval", "require_approval")
        assert row.expires_at == pause.expires_at
        await proved(engine)


@pytest.mark.parametrize("identity", ["", None])
async def test_behaviour_048_a_call_without_id_waits_under_a_generated_one(
    journal_url: str, identity: str | None
) -> None:
    async with staged(journal_url, never, metadata=APPROVED_FIRST) as engine:
        pause = await paused(engine, call(call_id=identity))
        assert pause.call_id
        assert pause.key == f"m:{pause.call_id}"


async def test_behaviour_049_nobody_is_asked_about_arguments_that_cannot_run(journal_url: str) -> None:
    async with staged(journal_url, never, parameters=LIST, metadata=APPROVED_FIRST) as engine:
        for number, arguments in enumerate(("[1]", '{"n": "many"}', "{not json")):
            failed = await outcome_of(engine, call(arguments, call_id=f"c{number}"))
            assert isinstance(failed, Failed)
            assert failed.kind == "invalid_arguments"
        await proved(engine)


class Api(Tool):
    """Its actions are its row's."""

    name = "api_tool"
    actions_in_config = True

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        return []

    def get_config_requirements(self) -> dict[str, Any]:
        return {}

    async def execute_action(self, action_name: str, /, **kwargs: Any) -> str:
        raise AssertionError("it waits")


async def test_behaviour_050_an_api_rows_own_flag_gates(journal_url: str) -> None:
    config = {"actions": {"send": {"body": {}, "require_approval": True}}}
    async with staged_engine(journal_url, Api, rows=[ToolRow(id="t1", name="api_tool", config=config)]) as engine:
        pause = await paused(engine, call({}, name="send"))
        assert pause.pause_type == "awaiting_approval"


@pytest.mark.parametrize(
    ("flagged", "says", "rule"),
    [
        (False, (True, False), "live_gate"),
        (True, (False, False), "require_approval"),
        (False, RuntimeError("no sandbox"), "live_gate_failed"),
        (True, RuntimeError("no sandbox"), "live_gate_failed"),
    ],
)
async def test_behaviour_051_either_source_is_enough(journal_url: str, flagged: bool, says: Any, rule: str) -> None:
    row = ToolRow(
        id="t1",
        name="code_executor",
        config={"says": says},
        actions=[ActionSettings(name="run_code", require_approval=flagged)],
    )
    async with staged_engine(journal_url, Executor, rows=[row]) as engine:
        pause = await paused(engine, call({}, name="run_code"))
        assert (pause.pause_type, pause.rule) == ("awaiting_approval", rule)
        assert "no sandbox" not in pause.reason
        await proved(engine)


async def test_an_executor_that_nothing_gates_runs(journal_url: str) -> None:
    async with staged_engine(journal_url, Executor, rows=[ToolRow(id="t1", name="code_executor")]) as engine:
        assert isinstance(await outcome_of(engine, call({}, name="run_code")), Executed)


async def run_on(engine: Engine, text: str) -> Executed | Paused | Any:
    return await outcome_of(engine, command(text))


async def test_behaviour_052_a_live_decision_replaces_the_snapshot(journal_url: str) -> None:
    async with staged_engine(journal_url, Device, rows=[device_row(mode="full", flagged=True)]) as engine:
        event = await run_on(engine, "whoami")
        assert isinstance(event, Executed)
        assert event.result == "ran whoami"
        assert [type(each) for each in await stream_of(engine)] == [Proposed, Executed]
        await proved(engine)


@pytest.mark.parametrize(
    ("config", "text", "rule"),
    [
        ({"mode": "full"}, "rm notes.txt", None),
        ({"mode": "full"}, "rm -rf /", "denylist"),
        ({"mode": "ask", "remembered": ["rm *"]}, "rm -rf /", "denylist"),
    ],
)
async def test_behaviour_053_a_denylist_asks_in_every_mode(
    journal_url: str, config: dict[str, Any], text: str, rule: str | None
) -> None:
    async with staged_engine(journal_url, Device, rows=[device_row(**config)]) as engine:
        event = await run_on(engine, text)
        if rule is None:
            assert isinstance(event, Executed)
        else:
            assert isinstance(event, Paused)
            assert (event.pause_type, event.rule) == ("awaiting_approval", rule)
            assert event.arguments == {"command": text}
        await proved(engine)


@pytest.mark.parametrize(("remembered", "kind"), [([], Paused), (["ls *"], Executed)])
async def test_behaviour_054_remembered_patterns_open_it(
    journal_url: str, remembered: list[str], kind: type[Any]
) -> None:
    async with staged_engine(journal_url, Device, rows=[device_row(remembered=remembered)]) as engine:
        assert isinstance(await run_on(engine, "ls -la /tmp"), kind)


@pytest.mark.parametrize(
    ("device", "text"), [("missing", "whoami"), ("inactive", "whoami"), ("active", " "), ("active", "")]
)
async def test_behaviour_055_what_cannot_be_told_asks(journal_url: str, device: str, text: str) -> None:
    async with staged_engine(journal_url, Device, rows=[device_row(mode="full", device=device)]) as engine:
        event = await run_on(engine, text)
        assert isinstance(event, Paused)
        assert event.rule == "live_gate"


async def test_a_client_tool_may_need_approval_first(journal_url: str) -> None:
    context = CallContext(user_id="u", message_id="m", client_tools=({**WRITE_FILE, "require_approval": True},))
    async with staged(journal_url, answer) as engine:
        pause = await outcome_of(engine, call({"path": "a"}, name="write_file"), context)
        assert isinstance(pause, Paused)
        assert (pause.pause_type, pause.rule) == ("awaiting_approval", "require_approval")


async def test_the_pause_comes_with_the_proposal_where_nobody_need_be_asked(journal_url: str) -> None:
    async with staged(journal_url, never, metadata=APPROVED_FIRST) as engine:
        proposed, pause = await events_of(engine, call(), CONTEXT)
        assert await stream_of(engine) == [proposed, pause]
        assert (await row_of(engine)).version == 2
