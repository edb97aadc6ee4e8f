"""The promised surface, used as its page says and through its own names only (DESIGN 9)."""

from __future__ import annotations

import inspect
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from engine import (
    ActionSettings,
    CallContext,
    Engine,
    Settings,
    Tool,
    ToolCall,
    ToolContext,
    ToolManager,
    ToolResult,
    ToolRow,
    parse_calls,
)
from events import (
    Conflict,
    Denied,
    EventLog,
    Executed,
    Failed,
    JournalError,
    LogUnavailable,
    NotFound,
    Paused,
    Proposed,
    Recorded,
    Refused,
    TransitionRejected,
    Unavailable,
    VersionConflict,
    to_wire,
)
from projections import rebuild, verify

__all__ = ()

pytestmark = pytest.mark.anyio


class Counter(Tool):
    """The page's own example."""

    name = "counter"

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        schema = {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "by": {"type": "integer"}},
            "required": ["by"],
        }
        return [{"name": "bump", "description": "Adds to n.", "parameters": schema}, {"name": "ask", "parameters": {}}]

    def get_config_requirements(self) -> dict[str, Any]:
        return {}

    async def execute_action(self, action_name: str, /, **kwargs: Any) -> Any:
        return {"sum": kwargs["n"] + kwargs["by"]}


class Reader(Counter):
    """Wants the context of its calls, and is sync."""

    name = "reader"

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        return [{"name": "whoami", "parameters": {}}]

    def execute_action(self, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:  # type: ignore[override]
        return ToolResult({"user": context.user_id, "call": context.call_id})


ROWS = [
    ToolRow(
        id="t1",
        name="counter",
        user_id="u1",
        config={},
        credentials=None,
        actions=[
            ActionSettings(
                name="bump",
                active=True,
                description=None,
                require_approval=False,
                presets={},
                pinned={"n": 1},
                hidden=(),
            ),
            ActionSettings(name="ask", require_approval=True),
        ],
        version=1,
    ),
    ToolRow(id="t2", name="reader", user_id="u1", config={}, credentials=None, actions=None, version=1),
]

RESPONSE = {
    "choices": [
        {
            "message": {
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "bump", "arguments": '{"by": 2}'}},
                    {"id": "c2", "type": "function", "function": {"name": "whoami", "arguments": ""}},
                    {"id": "c3", "type": "function", "function": {"name": "ask", "arguments": "{}"}},
                    {"id": "c4", "type": "function", "function": {"name": "bump", "arguments": '{"by": 2, "n": 9}'}},
                ]
            }
        }
    ]
}


CONTEXT = CallContext(
    user_id="u1",
    message_id="m1",
    conversation_id=None,
    run_id=None,
    agent_id=None,
    headless=False,
    tool_ids=None,
    tool_allowlist=frozenset(),
    client_tools=(),
    attachments=(),
)


async def test_a_turn_as_the_page_describes_it(database_url: str) -> None:
    opening = Engine.open(database_url, rows=ROWS, tools=[Counter, Reader], guards=(), settings=Settings())
    async with opening as engine:
        prepared = await engine.prepare_tools_for_llm(CONTEXT, family="openai")
        assert prepared.names["bump"] == ("t1", "bump")
        shown = next(each["function"] for each in prepared.functions if each["function"]["name"] == "bump")
        assert set(shown["parameters"]["properties"]) == {"by"}

        told: list[list[Any]] = []
        for wanted in parse_calls(RESPONSE, "openai"):
            async with aclosing(engine.execute(wanted, CONTEXT, prepared=None, reraise=False)) as events:
                told.append([event async for event in events])
        kinds = [tuple(type(event) for event in pair) for pair in told]
        assert kinds == [(Proposed, Executed), (Proposed, Executed), (Proposed, Paused), (Proposed, Failed)]
        assert told[0][1].result == {"sum": 3}
        assert told[1][1].result == {"user": "u1", "call": "c2"}
        assert to_wire(told[0][1])["result"] == '{"sum":3}'

        assert await engine.confirm("m1", user_id="u1") == 2
        assert await engine.confirm("m1", user_id="u1") == 0
        row = await engine.attempt("m1:c1", user_id="u1")
        assert row is not None
        assert (row.status, row.result) == ("confirmed", {"sum": 3})
        assert await engine.attempt("m1:c1", user_id="u2") is None
        await look_through(engine, told)
        engine.statistics()


async def look_through(engine: Engine, told: list[list[Any]]) -> None:
    """Read the log in every way there is."""
    assert isinstance(engine.log, EventLog)
    everything = [record async for record in engine.log.read_all(after=0)]
    assert all(isinstance(record, Recorded) for record in everything)
    assert [record async for record in engine.log.read(after=0, user_id="u1")] == everything
    assert [record async for record in engine.log.read(after=0, user_id=None)] == []
    stream = [record.event async for record in engine.log.read_stream("m1:c1", user_id="u1")]
    assert stream[:2] == told[0]
    followed = engine.log.subscribe("name", after=0)
    assert [await anext(followed) for _ in everything] == everything
    assert await engine.log.head() == everything[-1].position
    report = await verify(engine.log)
    assert report.ok
    assert not report.problems
    assert (await rebuild(engine.log)).ok


async def test_databases_by_their_urls(tmp_path: Path) -> None:
    for url, keeps in ((f"sqlite:///{tmp_path}/journal.db", True), ("sqlite://", True), ("null://", False)):
        async with Engine.open(url, rows=ROWS, tools=[Counter]) as engine:
            wanted = ToolCall(id="c1", name="bump", arguments={"by": 1}, extra={})
            async with aclosing(engine.execute(wanted, CallContext(user_id="u1", message_id="m1"))) as events:
                assert [type(event) async for event in events] == [Proposed, Executed]
            assert (await engine.attempt("m1:c1", user_id="u1") is not None) == keeps
    for url in ("mysql://x", "journal.db", ""):
        with pytest.raises(Refused):
            async with Engine.open(url):
                raise AssertionError(url)


async def test_arguments_in_every_form() -> None:
    async with Engine.open("sqlite://", rows=ROWS, tools=[Counter, Reader]) as engine:
        for number, arguments in enumerate(({"by": 1}, '{"by": 1}', b'{"by": 1}')):
            wanted = ToolCall(id=f"c{number}", name="bump", arguments=arguments)
            async with aclosing(engine.execute(wanted, CallContext(user_id="u1", message_id="m1"))) as events:
                assert isinstance([event async for event in events][-1], Executed)
        async with aclosing(engine.execute(ToolCall(name="whoami"), CallContext(user_id="u1"))) as events:
            assert isinstance([event async for event in events][-1], Executed)


def test_errors_are_of_three_families() -> None:
    assert issubclass(NotFound, Refused)
    for family, members in ((Conflict, (VersionConflict, TransitionRejected)), (Unavailable, (LogUnavailable,))):
        assert all(issubclass(member, family) for member in members)
    assert all(issubclass(family, JournalError) for family in (Refused, Conflict, Unavailable))


def test_tools_are_found_by_name() -> None:
    manager = ToolManager()
    assert {"think", "notes", "read_webpage"} <= set(manager.load_tools()) | {"think"}
    assert issubclass(manager.load_tool("think"), Tool)
    with pytest.raises(NotFound):
        manager.load_tool("no_such_tool")


PROMISED = {
    Engine.open: "url rows tools guards settings",
    Engine.prepare_tools_for_llm: "context family",
    Engine.execute: "call context prepared reraise",
    Engine.confirm: "message_id user_id",
    Engine.attempt: "key user_id",
    EventLog.read: "after user_id",
    EventLog.read_all: "after",
    EventLog.read_stream: "key user_id",
    EventLog.subscribe: "name after",
    ToolCall: "id name arguments extra",
    ToolRow: "id name user_id config credentials actions version",
    ActionSettings: "name active description require_approval presets pinned hidden",
    CallContext: (
        "user_id message_id conversation_id run_id agent_id headless tool_ids tool_allowlist client_tools attachments"
    ),
    parse_calls: "response family",
}


@pytest.mark.parametrize("promised", PROMISED, ids=lambda promised: promised.__qualname__)
def test_parameters_have_the_promised_names(promised: Any) -> None:
    names = set(inspect.signature(promised).parameters)
    assert set(PROMISED[promised].split()) - names == set()


async def test_headless_runs_deny_what_would_wait() -> None:
    async with Engine.open("sqlite://", rows=ROWS, tools=[Counter, Reader]) as engine:
        context = CallContext(user_id="u1", message_id="m1", headless=True)
        async with aclosing(engine.execute(ToolCall(id="c1", name="ask"), context)) as events:
            _, denied = [event async for event in events]
        assert isinstance(denied, Denied)
        assert denied.reason == "headless"
        assert denied.message
