"""Tools of outside services at a server of the test's own that answers as they do, alone and through the engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from engine import Engine, Settings
from engine.config_check import without_secret_values
from engine.contract import Scope, Tool, ToolResult
from engine.credentials import MasterKeys, Vault
from engine.net.allow_list import AllowList
from engine.net.policy import NetPolicy
from engine.rows import ToolRow
from engine.services import Services
from tests.engine.api.calls import context_of
from tests.engine.api.raw_server import RawServer, answer

__all__ = ("LOCAL", "CallOf", "asked_more_than", "calling", "error_of", "recorded", "recorded_bytes", "through_engine")

LOCAL = NetPolicy(allow=AllowList(("127.0.0.1",)))


def recorded_bytes(name: str) -> bytes:
    """Return a response's body as it was recorded."""
    return (Path(__file__).parent / "recorded" / name).read_bytes()


def recorded(name: str, status: int = 200, **headers: str) -> bytes:
    """Return a recorded response."""
    kind = "text/html; charset=UTF-8" if name.endswith("html") else "application/json"
    return answer(recorded_bytes(name), status, kind, **headers)


class CallOf:
    """Calls one row's tool, as the engine would, and shows what it did to its span."""

    def __init__(self, tool: Tool, services: Services) -> None:
        self.tool = tool
        self.services = services
        self.noted: dict[str, Any] = {}

    def of_user(self, user: str) -> CallOf:
        """Return the same row's tool for another user, with the same services."""
        scope = Scope(user_id=user, owner=user, tool_id=self.tool.scope.tool_id, services=self.services)
        return CallOf(type(self.tool)(self.tool.config, scope), self.services)

    def preview(self, action: str, **arguments: Any) -> str:
        """Return what a call would send."""
        tool: Any = self.tool
        shown = tool.preview_request(action, arguments)
        assert isinstance(shown, str)
        return shown

    async def __call__(self, action: str, /, *, seconds: float = 20.0, run: str | None = None, **arguments: Any) -> Any:
        context = context_of(seconds)
        context.run_id = run
        context.annotate = self.noted.__setitem__
        return await self.tool.execute_action(action, context, **arguments)


@asynccontextmanager
async def calling(
    tool: type[Tool], policy: NetPolicy = LOCAL, tool_id: str = "t1", **config: Any
) -> AsyncIterator[CallOf]:
    """Give out a row's tool to call."""
    services = Services(policy)
    try:
        yield CallOf(tool(config, Scope(user_id="u", owner="u", tool_id=tool_id, services=services)), services)
    finally:
        await services.aclose()


async def asked_more_than(server: RawServer, times: int) -> None:
    """Wait until a server has been asked more often."""
    with anyio.fail_after(10):
        while len(server.received) <= times:
            await anyio.sleep(0.005)


def error_of(result: Any) -> dict[str, Any]:
    """Return the content of a result that is one of error."""
    assert isinstance(result, ToolResult), result
    assert result.status == "error"
    assert isinstance(result.data, dict)
    return result.data


@asynccontextmanager
async def through_engine(url: str, tool: type[Tool], **config: Any) -> AsyncIterator[Engine]:
    """Open an engine whose one row is the tool's, its secrets sealed, on a policy that reaches the test's server."""
    requirements = tool({}, Scope(user_id="u", owner="u", tool_id="t1")).get_config_requirements()
    plain, secrets = without_secret_values(requirements, config, {})
    keys = MasterKeys("k1", {"k1": b"1" * 32})
    sealed = Vault(keys).seal(secrets, owner="u", row_id="t1") if secrets else None
    row = ToolRow(id="t1", name=tool.name, user_id="u", config=plain, credentials=sealed)
    async with Engine.open(url, rows=[row], tools=[tool], settings=Settings(net=LOCAL, master_keys=keys)) as engine:
        yield engine
