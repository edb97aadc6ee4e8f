"""A live-gated tool is asked once, at the moment of the call; whatever fails there, a person must approve."""

from __future__ import annotations

import time
from typing import Any

import anyio
import pytest

from engine import ActionSettings, CallContext, Limits, Settings, Tool, ToolRow
from events import Executed, Failed, Paused, Proposed
from tests.engine.staging import (
    CONTEXT,
    call,
    events_of,
    outcome_of,
    proved,
    row_of,
    staged_engine,
    stream_of,
    tool_of,
)

__all__ = ()

pytestmark = pytest.mark.anyio

HURRIED = Settings(limits=Limits(ask=0.05))
NESTED = {"type": "object", "properties": {"a": {"type": "object"}, "b": {}, "c": {}}}


async def answer(**kwargs: Any) -> Any:
    return kwargs


def asked(preview: Any, **facts: Any) -> type[Tool]:
    return tool_of(answer, parameters=NESTED, preview_decision=preview, **facts)


@pytest.mark.parametrize(
    "said",
    [None, True, (), (False,), (False, False, False), (0, 0), ("no", "no"), {"needs_approval": False}, (None, None)],
)
async def test_nonsense_is_a_failure_to_ask(sqlite_url: str, said: Any) -> None:
    async with staged_engine(sqlite_url, asked(lambda self, name, arguments: said)) as engine:
        pause = await outcome_of(engine, call())
        assert isinstance(pause, Paused)
        assert pause.rule == "live_gate_failed"
        assert "two booleans" in pause.reason


@pytest.mark.parametrize("error", [ValueError("s3cret"), SystemExit(3), KeyError("s3cret"), TimeoutError()])
async def test_raising_is_a_failure_to_ask(sqlite_url: str, error: BaseException) -> None:
    def preview(self: Tool, name: str, arguments: Any) -> Any:
        raise error

    async with staged_engine(sqlite_url, asked(preview)) as engine:
        pause = await outcome_of(engine, call())
        assert isinstance(pause, Paused)
        assert pause.rule == "live_gate_failed"
        assert "s3cret" not in str(pause)
        await proved(engine)


async def hangs(self: Tool, name: str, arguments: Any) -> Any:
    await anyio.sleep_forever()


def sleeps(self: Tool, name: str, arguments: Any) -> Any:
    time.sleep(0.3)
    return False, False


@pytest.mark.parametrize("preview", [hangs, sleeps])
async def test_taking_too_long_is_a_failure_to_ask(sqlite_url: str, preview: Any) -> None:
    async with staged_engine(sqlite_url, asked(preview), settings=HURRIED) as engine:
        pause = await outcome_of(engine, call())
        assert isinstance(pause, Paused)
        assert pause.rule == "live_gate_failed"
        assert "0.05 s" in pause.reason


def test_a_tool_has_ten_seconds() -> None:
    assert Limits().ask == 10.0


async def test_a_tool_that_cannot_be_loaded_cannot_be_asked(sqlite_url: str) -> None:
    tool = asked(lambda self, name, arguments: (False, False), user_scoped=True)
    async with staged_engine(sqlite_url, tool, rows=[ToolRow(id="t1", name="counter")]) as engine:
        pause = await outcome_of(engine, call(), CallContext(message_id="m"))
        assert isinstance(pause, Paused)
        assert "could not be loaded" in pause.reason


async def test_what_it_is_shown_is_what_would_run_and_only_a_copy(journal_url: str) -> None:
    """APPROVAL-01's hook: what it changes is neither shown, nor journalled, nor run."""
    shown: list[Any] = []

    def preview(self: Tool, name: str, arguments: dict[str, Any]) -> tuple[bool, bool]:
        shown.append((name, {**arguments, "a": dict(arguments["a"])}))
        arguments["a"]["limit"] = 12
        arguments["b"] = "changed"
        return False, False

    row = ToolRow(id="t1", name="counter", actions=[ActionSettings(name="bump", presets={"b": 1}, pinned={"c": 2})])
    async with staged_engine(journal_url, asked(preview), rows=[row]) as engine:
        proposed, executed = await events_of(engine, call({"a": {"limit": 70}}))
        assert isinstance(executed, Executed)
        assert isinstance(proposed, Proposed)
        assert shown == [("bump", {"a": {"limit": 70}, "b": 1, "c": 2})]
        assert executed.result == {"a": {"limit": 70}, "b": 1, "c": 2}
        assert proposed.arguments == {"a": {"limit": 70}}
        assert (await row_of(engine)).arguments == {"a": {"limit": 70}}


async def test_it_is_asked_only_once_the_proposal_is_durable(journal_url: str) -> None:
    seen: list[Any] = []

    async def preview(self: Tool, name: str, arguments: Any) -> tuple[bool, bool]:
        seen.append((await row_of(engine)).gate)
        return True, False

    async with staged_engine(journal_url, asked(preview)) as engine:
        proposed, pause = await events_of(engine, call())
        assert seen == ["open"]
        assert await stream_of(engine) == [proposed, pause]
        # The same call again is told again, and its tool not asked again.
        assert await events_of(engine, call()) == [proposed, pause]
        assert len(seen) == 1
        await proved(engine)


async def test_what_cannot_run_anyway_is_not_asked_about(sqlite_url: str) -> None:
    def preview(self: Tool, name: str, arguments: Any) -> Any:
        raise AssertionError("asked")

    async with staged_engine(sqlite_url, asked(preview)) as engine:
        failed = await outcome_of(engine, call({"a": 1}))
        assert isinstance(failed, Failed)
        assert failed.kind == "invalid_arguments"


async def test_who_leaves_while_it_is_asked_leaves_nothing_open(journal_url: str) -> None:
    asking = anyio.Event()

    async def preview(self: Tool, name: str, arguments: Any) -> Any:
        asking.set()
        await anyio.sleep_forever()

    async with staged_engine(journal_url, asked(preview)) as engine:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outcome_of, engine, call(), CONTEXT)
            await asking.wait()
            tasks.cancel_scope.cancel()
        _, failed = await stream_of(engine)
        assert isinstance(failed, Failed)
        assert failed.kind == "cancelled"
        assert "was not run" in failed.message
        await proved(engine)


async def test_a_running_question_is_a_running_call(journal_url: str) -> None:
    asking, go_on = anyio.Event(), anyio.Event()

    async def preview(self: Tool, name: str, arguments: Any) -> Any:
        asking.set()
        await go_on.wait()
        return False, False

    async with staged_engine(journal_url, asked(preview)) as engine:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(outcome_of, engine, call(), CONTEXT)
            await asking.wait()
            repeated = await outcome_of(engine, call())
            assert repeated.key == "m:c1~d1"
            go_on.set()
        assert (await row_of(engine)).status == "executed"
        await proved(engine)
