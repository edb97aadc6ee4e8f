"""Tools made of functions, engines around them, and what a call left behind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from inspect import iscoroutinefunction
from typing import Any

from engine import CallContext, Engine, Prepared, ResultGuard, Settings, Tool, ToolCall, ToolContext, ToolRow
from events import Denied, Executed, Failed, Paused, Proposed, ToolEvent
from events.types import StreamEvent
from projections import AttemptRow, verify

__all__ = (
    "CONTEXT",
    "ROW",
    "Echo",
    "bare",
    "call",
    "events_of",
    "outcome_of",
    "proved",
    "row_of",
    "staged",
    "staged_engine",
    "stream_of",
    "tool_of",
)

CONTEXT = CallContext(user_id="u", message_id="m")
ROW = ToolRow(id="t1", name="counter", user_id="u")
bare = CallContext(user_id="u")


class Echo(Tool):
    """Returns what it received."""

    name = "echo"

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        properties: dict[str, Any] = {name: {} for name in ("a", "zero", "no", "empty", "unset", "safe")}
        return [{"name": "echo", "parameters": {"type": "object", "properties": properties}}]

    def get_config_requirements(self) -> dict[str, Any]:
        return {}

    async def execute_action(self, action_name: str, /, **kwargs: Any) -> Any:
        return kwargs


def tool_of(
    runs: Callable[..., Any],
    *,
    name: str = "counter",
    action: str = "bump",
    parameters: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    wants_context: bool = False,
    **attributes: Any,
) -> type[Tool]:
    """Return a tool class whose one action calls a function, async if that is: with its arguments as keywords.

    :param metadata: what else the action's entry says
    :param wants_context: the function gets the call's ToolContext first
    :param attributes: the class's own, e.g. ``timeout``
    """
    schema = parameters if parameters is not None else {"type": "object", "properties": {}}
    entry = {"name": action, "description": f"It {action}s.", "parameters": schema, **(metadata or {})}

    async def with_context(self: Tool, action_name: str, context: ToolContext, /, **kwargs: Any) -> Any:
        return await runs(context, **kwargs)

    async def awaited(self: Tool, action_name: str, /, **kwargs: Any) -> Any:
        return await runs(**kwargs)

    def called(self: Tool, action_name: str, /, **kwargs: Any) -> Any:
        return runs(**kwargs)

    body: dict[str, Any] = {
        "execute_action": with_context if wants_context else awaited if iscoroutinefunction(runs) else called,
        "get_actions_metadata": lambda self: [entry],
        "get_config_requirements": lambda self: {},
        "name": name,
    }
    return type(name.title(), (Tool,), body | attributes)


def call(
    arguments: Any = None, *, call_id: str | None = "c1", name: str | None = "bump", extra: dict[str, Any] | None = None
) -> ToolCall:
    """Return a call of the staged tool's action."""
    return ToolCall(id=call_id, name=name, arguments=arguments, extra=extra or {})


@asynccontextmanager
async def staged_engine(
    url: str,
    *tools: type[Tool],
    rows: Sequence[ToolRow] | None = None,
    guards: Sequence[ResultGuard] = (),
    settings: Settings | None = None,
) -> AsyncIterator[Engine]:
    """Open an engine with these tools; without rows, each has one of its own: ``t1``, ``t2``, …"""
    own = [ToolRow(id=f"t{place}", name=tool.name, user_id="u") for place, tool in enumerate(tools, 1)]
    async with Engine.open(url, rows=own if rows is None else rows, tools=tools, guards=guards, settings=settings) as e:
        yield e


@asynccontextmanager
async def staged(url: str, runs: Callable[..., Any], **facts: Any) -> AsyncIterator[Engine]:
    """Open an engine with one tool made of a function (see :func:`tool_of`)."""
    async with staged_engine(url, tool_of(runs, **facts)) as engine:
        yield engine


async def events_of(
    engine: Engine,
    wanted: ToolCall,
    context: CallContext = CONTEXT,
    prepared: Prepared | None = None,
    reraise: bool = False,
) -> list[StreamEvent]:
    """Return everything that ``execute`` yields."""
    async with aclosing(engine.execute(wanted, context, prepared, reraise)) as stream:
        return [event async for event in stream]


async def outcome_of(
    engine: Engine, wanted: ToolCall, context: CallContext = CONTEXT, prepared: Prepared | None = None
) -> Paused | Denied | Executed | Failed:
    """Return the second of the two events that ``execute`` yields."""
    first, second = await events_of(engine, wanted, context, prepared)
    assert isinstance(first, Proposed)
    assert not isinstance(second, Proposed)
    assert first.key == second.key
    return second


async def row_of(engine: Engine, key: str = "m:c1", user_id: str | None = "u") -> AttemptRow:
    """Return the row of a call that is there."""
    row = await engine.attempt(key, user_id=user_id)
    assert row is not None, f"no row of {key}"
    return row


async def stream_of(engine: Engine, key: str = "m:c1", user_id: str | None = "u") -> list[ToolEvent]:
    """Return what the log has of a call."""
    return [record.event async for record in engine.log.read_stream(key, user_id=user_id)]


async def proved(engine: Engine) -> None:
    """Assert that the log is legal and the table its fold."""
    report = await verify(engine.log)
    assert report.ok, report.problems
