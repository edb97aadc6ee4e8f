"""Streamable HTTP: a POST for each message, answered by one message or by a stream of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import anyio
import httpx2
import msgspec
from anyio.abc import TaskGroup
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from engine.mcp.event_stream import EventStream
from engine.mcp.exchange import Exchange
from engine.mcp.transport import Deliver, content_type_of, deliver_all, is_same_origin

__all__ = ("StreamableHttp",)

_SESSION: Final = "mcp-session-id"
_VERSION: Final = "mcp-protocol-version"
_ACCEPTED: Final = "application/json, text/event-stream"
_EVENTS: Final = "text/event-stream"
_KEPT: Final = (307, 308)
_REDIRECTS: Final = 5
_ATTEMPTS: Final = 2
_RETRY: Final = 1.0
_LONGEST_RETRY: Final = 30.0


class StreamableHttp:
    """One session over streamable HTTP. A POST runs in the task of whoever sends the message."""

    def __init__(self, url: str, client: httpx2.AsyncClient, largest: int) -> None:
        """Open nothing yet.

        :param largest: bytes of one event
        """
        self._url = httpx2.URL(url)
        self._client = client
        self._largest = largest
        self._session_id: str | None = None
        self._version: str | None = None
        self._deliver: Deliver | None = None
        self._tasks: TaskGroup | None = None

    def __repr__(self) -> str:
        return f"<StreamableHttp session={self._session_id}>"

    async def open(self, deliver: Deliver, tasks: TaskGroup) -> None:
        """Make ready; nothing is sent for that."""
        self._deliver, self._tasks = deliver, tasks

    async def lost(self) -> None:
        """Wait for ever: each message has a connection of its own."""
        await anyio.sleep(math.inf)

    async def post(self, content: Mapping[str, Any], headers: Mapping[str, str], exchange: Exchange) -> bool:
        """Send a message and deliver what is answered; see ``Transport``."""
        method = content.get("method")
        if method == "initialize":
            self._version = None
        elif _VERSION in headers:
            self._version = headers[_VERSION]
        if method == "notifications/cancelled" and self._version in MODERN_PROTOCOL_VERSIONS:
            # There the end of its connection is what tells that a request is given up.
            return False
        try:
            await self._exchanged(content, headers, exchange)
        except Exception as error:  # whatever sending or authenticating raises: the call that waits is told
            exchange.error = error
        if method == "notifications/initialized" and self._session_id and self._tasks is not None:
            self._tasks.start_soon(self._listen)
        return False

    async def _exchanged(self, content: Mapping[str, Any], headers: Mapping[str, str], exchange: Exchange) -> None:
        response = await self._sent(msgspec.json.encode(content), headers, exchange)
        exchange.status, exchange.content_type = response.status_code, content_type_of(response)
        if exchange.content_type == _EVENTS and exchange.status == 200:
            await self._streamed(response, content.get("id"))
            return
        try:
            body = await response.aread()
        finally:
            await response.aclose()
        if content.get("method") == "initialize" and exchange.status == 200:
            self._session_id = response.headers.get(_SESSION)
        if exchange.content_type == "application/json":
            self._take(body, content.get("id"))

    async def _sent(self, body: bytes, headers: Mapping[str, str], exchange: Exchange) -> httpx2.Response:
        """Send a message, after redirects within its origin that keep it whole; other redirects are no answer."""
        own = {"content-type": "application/json", "accept": _ACCEPTED, **self._usual(), **headers}
        exchange.session_id = own.get(_SESSION)
        exchange.sent = True
        left = _REDIRECTS
        while True:
            request = self._client.build_request("POST", self._url, content=body, headers=own)
            response = await self._client.send(request, stream=True)
            target = _target(response)
            if target is None or not left:
                return response
            await response.aclose()
            self._url, left = target, left - 1

    def _usual(self) -> dict[str, str]:
        usual = {_SESSION: self._session_id, _VERSION: self._version}
        return {name: value for name, value in usual.items() if value is not None}

    def _take(self, body: bytes, number: Any) -> None:
        """Deliver a message that is the answer to a request, whatever number it bears: some errors have none."""

        def deliver(message: dict[str, Any]) -> None:
            assert self._deliver is not None
            answers = number is not None and ("result" in message or "error" in message)
            self._deliver({**message, "id": number} if answers else message)

        deliver_all(body, deliver)

    async def _streamed(self, response: httpx2.Response, number: Any) -> None:
        """Deliver a stream's messages until the request is answered; one that breaks off is taken up again."""
        session = response.headers.get(_SESSION)
        if session is not None and self._session_id is None:
            self._session_id = session
        mark = _Mark()
        for _ in range(_ATTEMPTS + 1):
            if await self._read(response, number, mark) or not mark.id or self._version in MODERN_PROTOCOL_VERSIONS:
                return
            await anyio.sleep(mark.retry)
            response = await self._resumed(mark.id)
            if response.status_code != 200 or content_type_of(response) != _EVENTS:
                await response.aclose()
                return

    async def _read(self, response: httpx2.Response, number: Any, mark: _Mark) -> bool:
        """Deliver messages; return whether the request has been answered."""
        answered = False

        def deliver(message: dict[str, Any]) -> None:
            nonlocal answered
            assert self._deliver is not None
            answers = "result" in message or "error" in message
            answered = answered or answers
            self._deliver({**message, "id": number} if answers else message)

        try:
            async with EventStream(response, self._largest) as events:
                async for event in events:
                    mark.note(event.id, event.retry)
                    if event.name == "message" and event.data:
                        deliver_all(event.data, deliver)
                    if answered:
                        return True
        except httpx2.TransportError:
            if not mark.id:
                raise
        return answered

    async def _resumed(self, last: str | None) -> httpx2.Response:
        headers = {"accept": _EVENTS, "cache-control": "no-store", **self._usual()}
        if last:
            headers["last-event-id"] = last
        return await self._client.send(self._client.build_request("GET", self._url, headers=headers), stream=True)

    async def _listen(self) -> None:
        """Take in what the server says unasked, for as long as it keeps a stream for that."""
        mark, failures = _Mark(), 0
        while failures < _ATTEMPTS:
            try:
                response = await self._resumed(mark.id)
                if response.status_code != 200 or content_type_of(response) != _EVENTS:
                    await response.aclose()
                    return
                await self._heard(response, mark)
                failures = 0
            except Exception:  # no server needs to have such a stream, and no call depends on it
                failures += 1
            # A server that says 0 must not keep this one busy.
            await anyio.sleep(max(mark.retry, _RETRY))

    async def _heard(self, response: httpx2.Response, mark: _Mark) -> None:
        assert self._deliver is not None
        async with EventStream(response, self._largest) as events:
            async for event in events:
                mark.note(event.id, event.retry)
                if event.name == "message" and event.data:
                    deliver_all(event.data, self._deliver)

    async def farewell(self) -> None:
        """End the session, if the server gave one a name."""
        if self._session_id is None:
            return
        request = self._client.build_request("DELETE", self._url, headers=self._usual())
        try:
            await self._client.send(request)
        except Exception:  # a server that is gone has no sessions either
            return


class _Mark:
    """How far a stream has been read, and in how many seconds it may be taken up again."""

    def __init__(self) -> None:
        self.id = ""
        self.retry = _RETRY

    def note(self, event_id: str, retry: int | None) -> None:
        self.id = event_id or self.id
        if retry is not None:
            self.retry = min(retry / 1000, _LONGEST_RETRY)


def _target(response: httpx2.Response) -> httpx2.URL | None:
    """Return where a message goes instead; None: nowhere, or not there."""
    if response.status_code not in _KEPT or response.next_request is None:
        return None
    target, sent = response.next_request.url, response.request.url
    return target if is_same_origin(target, sent) and not target.userinfo else None
