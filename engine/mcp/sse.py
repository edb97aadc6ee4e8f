"""The older SSE transport: one stream from the server, and a POST for each message to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import httpx2
import msgspec
from anyio.abc import TaskGroup, TaskStatus

from engine.mcp.event_stream import EventStream
from engine.mcp.exchange import Exchange
from engine.mcp.transport import Deliver, NoStream, content_type_of, deliver_all, is_same_origin

__all__ = ("Sse",)


class Sse:
    """One session over SSE; its answers come by its stream."""

    def __init__(self, url: str, client: httpx2.AsyncClient, largest: int) -> None:
        """Open nothing yet.

        :param largest: bytes of one event
        """
        self._url = httpx2.URL(url)
        self._client = client
        self._largest = largest
        self._endpoint: httpx2.URL | None = None
        self._ended = anyio.Event()

    def __repr__(self) -> str:
        return f"<Sse {'ended' if self._ended.is_set() else 'open' if self._endpoint else 'new'}>"

    async def open(self, deliver: Deliver, tasks: TaskGroup) -> None:
        """Open the stream, and wait until the server has said where to post."""
        await tasks.start(self._read, deliver)

    async def lost(self) -> None:
        """Return when the stream has ended."""
        await self._ended.wait()

    async def _read(self, deliver: Deliver, *, task_status: TaskStatus[None]) -> None:
        try:
            request = self._client.build_request("GET", self._url, headers={"accept": "text/event-stream"})
            response = await self._client.send(request, stream=True)
            async with EventStream(response, self._largest) as events:
                _require_stream(response)
                async for event in events:
                    if event.name == "endpoint" and self._endpoint is None:
                        self._endpoint = self._named(event.data)
                        task_status.started()
                    elif event.name == "message" and event.data:
                        deliver_all(event.data, deliver)
        except Exception:
            if self._endpoint is None:
                raise
            # The session is over; who waits for an answer in it is told.
        finally:
            self._ended.set()
        if self._endpoint is None:
            raise NoStream("it does not say where to post")

    def _named(self, stated: str) -> httpx2.URL:
        try:
            endpoint = self._url.join(stated)
        except httpx2.InvalidURL:
            raise NoStream("it names no URL to post to") from None
        if not is_same_origin(endpoint, self._url) or endpoint.userinfo:
            raise NoStream("it names another host to post to")
        return endpoint

    async def post(self, content: Mapping[str, Any], headers: Mapping[str, str], exchange: Exchange) -> bool:
        """Send a message; see ``Transport``. The answer comes by the stream, if the server takes it."""
        assert self._endpoint is not None
        exchange.sent = True
        own = {"content-type": "application/json", **headers}
        try:
            request = self._client.build_request(
                "POST", self._endpoint, content=msgspec.json.encode(content), headers=own
            )
            response = await self._client.send(request)
        except Exception as error:  # whatever sending or authenticating raises: the call that waits is told
            exchange.error = error
            return False
        exchange.status = response.status_code
        return response.status_code < 300

    async def farewell(self) -> None:
        """Do nothing: the session ends with its stream."""


def _require_stream(response: httpx2.Response) -> None:
    if response.status_code != 200 or content_type_of(response) != "text/event-stream":
        raise NoStream("it gives no stream of events", response.status_code)
