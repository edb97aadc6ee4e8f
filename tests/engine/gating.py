"""Tools that are asked before they run, and the ways on for a call that waits."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from engine import CallContext, Engine, Tool, ToolCall, ToolRow
from events import Denied, Executed, Failed, Paused
from events.types import StreamEvent
from tests.engine.staging import CONTEXT, call, outcome_of

__all__ = (
    "APPROVED_FIRST",
    "NUMBER",
    "Device",
    "Executor",
    "Outcome",
    "Shelf",
    "command",
    "device_row",
    "headless",
    "paused",
    "resumed",
    "submitted",
)

APPROVED_FIRST = {"require_approval": True}
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}}
Outcome: TypeAlias = Paused | Denied | Executed | Failed
headless = CallContext(user_id="u", message_id="h", headless=True)


class Device(Tool):
    """Runs commands somewhere else; its owner's mode, remembered patterns and denylist decide at the moment."""

    name = "remote_device"
    live_gate = "replaces"

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        schema = {"type": "object", "properties": {"command": {"type": "string"}}}
        return [{"name": "run_command", "parameters": schema, "require_approval": self.config.get("flagged", False)}]

    def get_config_requirements(self) -> dict[str, Any]:
        return {}

    def preview_decision(self, action_name: str, arguments: dict[str, Any]) -> tuple[bool, bool]:
        wanted = arguments.get("command", "").strip()
        if self.config.get("device", "active") != "active" or not wanted:
            return True, False
        if wanted.startswith("rm -rf /"):
            return True, True
        remembered = any(fnmatchcase(wanted, pattern) for pattern in self.config.get("remembered", ()))
        return not (remembered or self.config["mode"] == "full"), False

    async def execute_action(self, action_name: str, /, **kwargs: Any) -> Any:
        if self.config.get("device", "active") != "active":
            return {"status": "error", "error": "the device is not active"}
        return f"ran {kwargs['command']}"


class Executor(Tool):
    """Runs code; its row's configuration may ask for approval besides the action's own flag."""

    name = "code_executor"

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        return [{"name": "run_code", "parameters": {}, "require_approval": self.config.get("flagged", False)}]

    def get_config_requirements(self) -> dict[str, Any]:
        return {}

    async def preview_decision(self, action_name: str, arguments: dict[str, Any]) -> Any:
        said = self.config.get("says", (False, False))
        if isinstance(said, BaseException):
            raise said
        return said

    async def execute_action(self, action_name: str, /, **kwargs: Any) -> Any:
        return "ran"


class Shelf:
    """A tool's function that keeps what it was given."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []

    async def take(self, **kwargs: Any) -> dict[str, Any]:
        self.taken.append(kwargs)
        return {"taken": kwargs}


def device_row(identity: str = "7", **config: Any) -> ToolRow:
    """Return a device's row; ``mode``, ``device``, ``remembered`` and ``flagged`` are its configuration."""
    return ToolRow(id=identity, name="remote_device", user_id="u", config={"mode": "ask", **config})


def command(text: str, call_id: str = "c1") -> ToolCall:
    """Return a call of a device."""
    return call({"command": text}, call_id=call_id, name="run_command")


async def paused(engine: Engine, wanted: ToolCall, context: CallContext = CONTEXT) -> Paused:
    """Execute a call that comes to wait for an approval, and return its pause."""
    event = await outcome_of(engine, wanted, context)
    assert isinstance(event, Paused)
    return event


async def resumed(engine: Engine, key: str = "m:c1", context: CallContext = CONTEXT) -> Outcome:
    """Return the one event that resuming yields."""
    async with aclosing(engine.resume(key, context)) as stream:
        return _only([event async for event in stream])


async def submitted(engine: Engine, result: Any, key: str = "m:c1", context: CallContext = CONTEXT) -> Outcome:
    """Return the one event that submitting a result yields."""
    async with aclosing(engine.submit_result(key, result, context)) as stream:
        return _only([event async for event in stream])


def _only(events: Sequence[StreamEvent]) -> Outcome:
    (event,) = events
    assert isinstance(event, Outcome)
    return event
