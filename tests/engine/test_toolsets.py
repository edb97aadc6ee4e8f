"""Which tools a turn has: explicit ids, a user's rows, the defaults, what a run that nobody watches may not have."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest

from engine import CallContext, Engine, Tool, ToolRow
from events import Executed, Failed, Paused, Refused
from tests.engine.staging import CONTEXT, call, outcome_of, staged_engine, tool_of

__all__ = ()

pytestmark = pytest.mark.anyio


async def answer() -> str:
    return "done"


class Scheduler(Tool):
    """A default tool that makes no sense where nobody watches."""

    name = "scheduler"
    default_on = True
    headless_allowed = False

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        return [{"name": "schedule", "parameters": {}}]

    def get_config_requirements(self) -> dict[str, Any]:
        return {}

    async def execute_action(self, action_name: str, /, **kwargs: Any) -> str:
        return "scheduled"


def tools(*names: str) -> list[type[Tool]]:
    return [tool_of(answer, name=name, action=name) for name in names]


async def names_of(engine: Engine, **context: Any) -> list[str]:
    prepared = await engine.prepare_tools_for_llm(CallContext(**{"user_id": "u", **context}))
    return list(prepared.names)


def default_id(engine_names: Sequence[str]) -> str:
    from engine.defaults import default_id as of_tool

    (name,) = engine_names
    return of_tool(name)


@pytest.mark.parametrize("how", ["default", "user's row", "agent's list", "explicit ids"])
async def test_behaviour_067_what_is_not_for_headless_runs(sqlite_url: str, how: str) -> None:
    rows = [] if how == "default" else [ToolRow(id="s1", name="scheduler", user_id="u")]
    scopes: dict[str, dict[str, Any]] = {
        "agent's list": {"agent_id": "a", "tool_ids": ("s1",)},
        "explicit ids": {"tool_ids": ("s1",)},
    }
    context = scopes.get(how, {})
    async with staged_engine(sqlite_url, Scheduler, rows=rows) as engine:
        assert "schedule" in await names_of(engine, **context)
        assert "schedule" not in await names_of(engine, headless=True, **context)
        unwatched = CallContext(**{"user_id": "u", "message_id": "m", "headless": True, **context})
        failed = await outcome_of(engine, call(name="schedule"), unwatched)
        assert isinstance(failed, Failed)
        assert failed.kind == "unknown_tool"
        watched = CallContext(**{"user_id": "u", "message_id": "n", **context})
        assert isinstance(await outcome_of(engine, call(name="schedule"), watched), Executed)


async def test_behaviour_068_an_empty_list_is_no_tools(sqlite_url: str) -> None:
    async with staged_engine(sqlite_url, *tools("one")) as engine:
        assert await names_of(engine, tool_ids=()) == []
        assert await names_of(engine, tool_ids=[], agent_id="a") == []
        mine = await names_of(engine)
        assert mine[0] == "one"
        assert len(mine) > 1, "and the defaults"
        assert await names_of(engine, agent_id="a") == ["one"]


async def test_explicit_ids_are_exactly_these_in_this_order(sqlite_url: str) -> None:
    rows = [ToolRow(id=f"t{place}", name=name, user_id="u") for place, name in enumerate(("one", "two", "three"), 1)]
    shared = ToolRow(id="t4", name="one", user_id="v")
    async with staged_engine(sqlite_url, *tools("one", "two", "three"), rows=[*rows, shared]) as engine:
        assert await names_of(engine, tool_ids=("t3", "t1")) == ["three", "one"]
        assert await names_of(engine, tool_ids=["t1", "t3", "t1"]) == ["one", "three"]
        assert await names_of(engine, tool_ids=("gone", "t2")) == ["two"]
        # Another owner's row, lent by its id.
        assert await names_of(engine, tool_ids=("t4",)) == ["one"]
        assert "one" in await names_of(engine, user_id="v", agent_id="a")
        assert await names_of(engine, user_id="v", agent_id="a") == ["one"]


async def test_a_default_can_be_named_by_its_id(sqlite_url: str) -> None:
    async with staged_engine(sqlite_url, Scheduler, rows=[]) as engine:
        assert await names_of(engine, tool_ids=(default_id(["scheduler"]),)) == ["schedule"]


async def test_without_rows_there_are_the_defaults_only(sqlite_url: str) -> None:
    async with Engine.open(sqlite_url) as engine:
        names = await names_of(engine)
        assert names
        assert await names_of(engine, agent_id="a") == []


async def test_a_broken_tool_costs_the_others_nothing(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    def says(metadata: Any) -> Any:
        def get_actions_metadata(self: Tool) -> Any:
            if isinstance(metadata, BaseException):
                raise metadata
            return metadata

        return get_actions_metadata

    faults: dict[str, Any] = {
        "raises": RuntimeError("no such server"),
        "nothing": None,
        "text": "text",
        "odd": [1, None, {}, {"name": 7}, {"name": "x", "parameters": "not a schema"}],
    }
    broken = [
        type(name.title(), (Scheduler,), {"name": name, "default_on": False, "get_actions_metadata": says(fault)})
        for name, fault in faults.items()
    ]
    rows = [ToolRow(id=name, name=name, user_id="u") for name in (*faults, "no_such_tool", "one")]
    with caplog.at_level(logging.WARNING):
        async with staged_engine(sqlite_url, *broken, *tools("one"), rows=rows) as engine:
            assert isinstance(await outcome_of(engine, call(name="one"), CONTEXT), Executed)
            assert "one" in await names_of(engine)
    told = " ".join(record.getMessage() for record in caplog.records)
    assert "no_such_tool" in told
    assert "raises" in told


async def test_what_a_broken_tool_says_shows_no_secret(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    class Leaky(Scheduler):
        name = "leaky"
        default_on = False

        def get_actions_metadata(self) -> list[dict[str, Any]]:
            raise RuntimeError(f"401 for key {self.config['api_key']}")

    rows = [ToolRow(id="l1", name="leaky", user_id="u", config={"api_key": "zq-7Hf2-secret"})]
    with caplog.at_level(logging.DEBUG):
        async with staged_engine(sqlite_url, Leaky, rows=rows) as engine:
            await names_of(engine)
    assert "l1" in caplog.text
    assert "401 for key" in caplog.text
    assert "zq-7Hf2-secret" not in caplog.text


async def test_metadata_may_come_later(sqlite_url: str) -> None:
    class Later(Scheduler):
        name = "later"
        default_on = False

        async def get_actions_metadata(self) -> list[dict[str, Any]]:  # type: ignore[override]
            return [{"name": "later", "parameters": {}}]

    async with staged_engine(sqlite_url, Later) as engine:
        assert "later" in await names_of(engine)


async def test_what_a_tool_is_seen_to_have_anew_is_what_later_turns_are_shown(sqlite_url: str) -> None:
    said = {"description": "old"}

    class Changing(Scheduler):
        name = "changing"
        default_on = False

        def get_actions_metadata(self) -> list[dict[str, Any]]:
            return [{"name": "move", "parameters": {}, "require_approval": True, **said}]

    async with staged_engine(sqlite_url, Changing) as engine:
        assert isinstance(await outcome_of(engine, call({}, name="move")), Paused)
        await engine.decide("m:c1", approve=True, by="alice", user_id="u")
        said["description"] = "new"
        async with aclosing(engine.resume("m:c1", CONTEXT)) as events:
            assert [type(event) async for event in events] == [Paused]
        prepared = await engine.prepare_tools_for_llm(CONTEXT)
        shown = [each["function"] for each in prepared.functions]
        assert [each["description"] for each in shown if each["name"] == "move"] == ["new"]


async def test_two_rows_of_one_id_are_refused_at_the_start(sqlite_url: str) -> None:
    rows = [ToolRow(id="t1", name="one"), ToolRow(id="t1", name="two")]
    with pytest.raises(Refused, match="same id"):
        async with staged_engine(sqlite_url, *tools("one", "two"), rows=rows):
            raise AssertionError("it cannot be opened")
