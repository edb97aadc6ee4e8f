"""How messages get to an MCP server and back; what the two transports have in common.

The library has both, and for what is wanted here each is in the way: one request that fails ends a whole session or is
waited for in vain, the status of an answer is not told, events over 1 MiB are refused over SSE, what a server says is
written to the log, and trio is left with unfinished generators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import httpx2
import msgspec
from anyio.abc import TaskGroup

from engine.mcp.exchange import Exchange

__all__ = ("Deliver", "NoStream", "Transport", "content_type_of", "deliver_all", "is_same_origin")

Deliver = Callable[[dict[str, Any]], None]
"""Takes a message from the server."""


class NoStream(Exception):
    """The server gives no stream of events, or none that can be used.

    :ivar status: of its answer; None: something else is wrong, which the text tells, or the cause
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


class Transport(Protocol):
    """The way to one server and back."""

    async def open(self, deliver: Deliver, tasks: TaskGroup) -> None:
        """Make ready for messages, those from the server to be delivered.

        :param tasks: where what goes on in the background may run
        :raises NoStream: if there is no way back
        """

    async def lost(self) -> None:
        """Return when no more messages can come."""

    async def post(self, content: Mapping[str, Any], headers: Mapping[str, str], exchange: Exchange) -> bool:
        """Send a message; what comes back with it is delivered. What goes wrong is noted in the exchange, not raised.

        :return: whether an answer may still come by another way
        """

    async def farewell(self) -> None:
        """Tell the server that its session is over."""


def content_type_of(response: httpx2.Response) -> str:
    """Return a response's content type without its parameters."""
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


def deliver_all(text: bytes | str, deliver: Deliver) -> None:
    """Deliver the messages in a JSON text; what is none is left out."""
    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return
    # Before 2025-06 several messages could come in one.
    messages = content if isinstance(content, list) else [content]
    for each in messages:
        if isinstance(each, dict):
            deliver(each)


def is_same_origin(one: httpx2.URL, other: httpx2.URL) -> bool:
    """Tell whether two URLs are of one scheme, host and port."""
    return (one.scheme, one.raw_host, one.port) == (other.scheme, other.raw_host, other.port)
