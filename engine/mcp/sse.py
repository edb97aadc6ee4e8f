"""The older SSE transport: one stream from the server, and a POST for each message to it.

The library's own ends a whole session, or leaves a call waiting, where one POST fails; and refuses events over 1 MiB.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from urllib.parse import urljoin, urlsplit

import anyio
import httpx2
from anyio.abc import TaskStatus
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError, JSONRPCRequest, jsonrpc_message_adapter

from engine.mcp.exchange import Exchange, in_exchange

__all__ = ("NoStream", "sse_streams")


@asynccontextmanager
async def sse_streams(
    url: str, client: httpx2.AsyncClient, largest: int
) -> AsyncGenerator[tuple[MemoryObjectReceiveStream[SessionMessage], _Posts], None]:
    """Open the server's stream; give the messages from it, and where to send those to it.

    :param largest: bytes of one event
    :raises NoStream: if the server gives no stream, or names another origin to post to
    """
    received, messages = anyio.create_memory_object_stream[SessionMessage](16)
    incoming = _Incoming(url, client, largest, received)
    async with received, messages, anyio.create_task_group() as tasks:
        endpoint = await tasks.start(incoming.read)
        yield messages, _Posts(endpoint, client, received)
        tasks.cancel_scope.cancel()


class NoStream(Exception):
    """The server gives no stream of events.

    :ivar status: of its answer
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


class _Incoming:
    """Reads the server's stream."""

    def __init__(
        self, url: str, client: httpx2.AsyncClient, largest: int, received: MemoryObjectSendStream[SessionMessage]
    ) -> None:
        self._url = url
        self._client = client
        self._largest = largest
        self._received = received

    async def read(self, *, task_status: TaskStatus[str]) -> None:
        """Read until the stream ends; starts once the server has said where to post."""
        request = self._client.build_request("GET", self._url, headers={"Accept": "text/event-stream"})
        exchange = Exchange()
        with in_exchange(exchange):
            response = await self._client.send(request, stream=True)
        try:
            if response.status_code != 200:
                status = response.status_code if exchange.error is None else None
                raise NoStream("it gives no stream of events", status) from exchange.error
            named = False
            async with self._received:
                async for event in httpx2.EventSource(response, max_event_size=self._largest):
                    if event.event == "endpoint" and not named:
                        task_status.started(self._endpoint(event.data))
                        named = True
                    elif event.event == "message" and event.data:
                        await self._take(event.data)
            if not named:
                raise NoStream("it does not say where to post")
        except (httpx2.StreamError, httpx2.SSEError) as error:
            raise NoStream("its stream of events broke off") from error
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    def _endpoint(self, stated: str) -> str:
        endpoint = urljoin(self._url, stated)
        ours, theirs = urlsplit(self._url), urlsplit(endpoint)
        if (ours.scheme, ours.netloc) != (theirs.scheme, theirs.netloc):
            raise NoStream("it names another host to post to")
        return endpoint

    async def _take(self, data: str) -> None:
        try:
            message = jsonrpc_message_adapter.validate_json(data, by_name=False)
        except ValueError:
            return
        await self._received.send(SessionMessage(message))


class _Posts:
    """Sends each message by a POST, in the task of whoever sends it."""

    def __init__(
        self, endpoint: str, client: httpx2.AsyncClient, received: MemoryObjectSendStream[SessionMessage]
    ) -> None:
        self._endpoint = endpoint
        self._client = client
        self._received = received

    async def send(self, item: SessionMessage) -> None:
        """Send a message; where the server does not take a request, that is the request's answer."""
        content = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        headers = {"Content-Type": "application/json"}
        request = self._client.build_request("POST", self._endpoint, content=content, headers=headers)
        response = await self._client.send(request)
        if response.status_code >= 300 and isinstance(item.message, JSONRPCRequest):
            error = ErrorData(code=INTERNAL_ERROR, message="the server did not take the request")
            refused = JSONRPCError(jsonrpc="2.0", id=item.message.id, error=error)
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await self._received.send(SessionMessage(refused))

    async def aclose(self) -> None:
        """Do nothing: each POST is closed when it ends."""

    async def __aenter__(self) -> _Posts:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
