"""Calls of api_tool's actions at a server of the test's own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from engine.actions import resolve_actions
from engine.api.operation import Operation
from engine.api.request import Arguments, OutgoingRequest, build
from engine.arguments import sort_arguments
from engine.contract import Scope, ToolContext, ToolResult
from engine.net.allow_list import AllowList
from engine.net.policy import NetPolicy
from engine.request_settings import request_settings
from engine.rows import ToolRow
from engine.services import Services
from engine.tools.api_tool import ApiTool
from events.errors import Refused

__all__ = ("LOCAL", "NoStore", "api_row", "built", "context_of", "refused", "result_of_call", "with_values")

LOCAL = NetPolicy(allow=AllowList(("127.0.0.1",)))
"""A policy under which the test's server may be reached."""


def api_row(*, security: list[dict[str, Any]] | None = None, **actions: dict[str, Any]) -> ToolRow:
    """Return a row of api_tool with these actions."""
    return ToolRow(id="t1", name="api_tool", user_id="u", config={"actions": actions, "security": security or []})


def with_values(definition: dict[str, Any], arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (request settings, body values) of a call, as the engine makes them."""
    row = api_row(act=definition)
    (action,) = resolve_actions(row, ApiTool, None)
    resolved = sort_arguments(action, arguments)
    return request_settings(row, action, resolved), resolved.kwargs


def built(definition: dict[str, Any], arguments: dict[str, Any], key: str | None = None) -> OutgoingRequest:
    """Return the request that an action makes of a call's arguments."""
    settings, body = with_values({"url": "https://api.example/v1", **definition}, arguments)
    groups = Arguments(query_params=settings["query_params"], headers=settings["headers"], body=body)
    return build(Operation.of(settings), groups, key)


def refused(definition: dict[str, Any], arguments: dict[str, Any]) -> str:
    """Return why an action refuses a call's arguments."""
    try:
        request = built(definition, arguments)
    except Refused as error:
        return str(error)
    raise AssertionError(f"{request!r} was not refused")


async def result_of_call(
    definition: dict[str, Any],
    arguments: dict[str, Any] | None = None,
    *,
    credentials: dict[str, Any] | None = None,
    seconds: float = 20.0,
    policy: NetPolicy = LOCAL,
    scope: Scope | None = None,
) -> ToolResult:
    """Return what a call of an action at a server brings.

    :param scope: whose call it is, whose services stay open; None: one of its own
    """
    settings, body = with_values(definition, arguments or {})
    services = Services(policy)
    own = Scope(user_id="u", owner="u", tool_id="t1", services=services)
    tool = ApiTool({**settings, "auth_credentials": credentials or {}}, scope or own)
    try:
        result = await tool.execute_action("act", context_of(seconds), **body)
    finally:
        await services.aclose()
    assert isinstance(result, ToolResult)
    return result


def context_of(seconds: float) -> ToolContext:
    """Return the context of a call that has so many seconds."""
    return ToolContext(
        user_id="u",
        message_id="m",
        call_id="c",
        conversation_id=None,
        run_id=None,
        agent_id=None,
        attachments=(),
        idempotency_key="m:c",
        deadline=datetime.now(UTC) + timedelta(seconds=seconds),
        progress=lambda done, total, message: None,
        store=NoStore(),
    )


class NoStore:
    """A store that an api_tool never asks."""

    tenant = "u"
    tool_id = "t1"
    dialect = "sqlite"

    async def read(self, statement: Any) -> list[Any]:
        raise AssertionError("read")

    async def write(self, *statements: Any) -> list[int]:
        raise AssertionError("written")
