"""Calls of an action that has pages, at a server of the test's own."""

from __future__ import annotations

from typing import Any

import msgspec

from engine.contract import ToolResult
from tests.engine.api.calls import LOCAL, result_of_call
from tests.engine.api.raw_server import RawServer, answer

__all__ = ("SECRET", "TEXT", "body", "read")

SECRET = "zq-7Hf2-secret"
TEXT = {"type": "string"}
_BEARER: list[dict[str, Any]] = [{"in": "bearer", "secret": "key"}]


def body(content: Any, **headers: Any) -> bytes:
    """Return a response with JSON."""
    return answer(msgspec.json.encode(content), **headers)


async def read(server: RawServer, pages: dict[str, Any], wanted: int | None = 3, **more: Any) -> ToolResult:
    """Return the result of a call at ``/v1/items``."""
    server.received = []
    properties = {"q": TEXT, "cursor": TEXT, "page": {"type": "integer"}, "offset": {"type": "integer"}}
    action = {"url": f"{server.origin}/v1/items", "query_params": {"properties": properties}, "security": _BEARER}
    arguments = {**more.pop("arguments", {}), **({} if wanted is None else {"max_pages": wanted})}
    policy = more.pop("policy", LOCAL)
    return await result_of_call(
        {**action, "pages": pages, **more}, arguments, credentials={"key": SECRET}, policy=policy
    )
