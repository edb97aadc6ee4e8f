"""Requests and their answers over a pair of streams, many at once: the part of an MCP client below its session.

The library has one of its own, which opens a second span for every call, and hands results on only if it knows every
kind of content in them. This one does neither, and tells what became of a request on the wire.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup, TaskStatus
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    REQUEST_TIMEOUT,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from engine.mcp.exchange import Exchange, current_exchange, in_exchange
from engine.telemetry import trace_meta

__all__ = ("Channel", "NoAnswer")

_log = logging.getLogger("calljournal.mcp")
_COURTESY: Final = 2.0
"""Seconds for a message that nobody waits for."""

_ANY_RESULT: Final[Mapping[str, dict[str, Any]]] = {"tools/call": {"content": [], "resultType": "complete"}}
_CLOSED: Final = ErrorData(code=CONNECTION_CLOSED, message="the connection is closed")
_LOST: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError)


class NoAnswer(MCPError):
    """A request was not answered, or not with a result.

    :ivar exchange: what is known of it
    :ivar cut: the connection is gone; else it is the server that says so, or the library in its place
    """

    def __init__(self, error: ErrorData, exchange: Exchange) -> None:
        super().__init__(error.code, error.message, error.data)
        self.exchange = exchange
        self.cut = error is _CLOSED or (error.code == CONNECTION_CLOSED and error.message.startswith("SSE stream"))


class _Waiting:
    """A request whose answer is awaited."""

    def __init__(self, progress: Any) -> None:
        self.progress = progress
        self.answered = anyio.Event()
        self.outcome: dict[str, Any] | ErrorData | None = None

    def settle(self, outcome: dict[str, Any] | ErrorData) -> None:
        if self.outcome is None:
            self.outcome = outcome
            self.answered.set()


class Channel:
    """What a ``ClientSession`` takes as its ``dispatcher``.

    A request that is cancelled, or times out, tells the server so and gives its connection up; the others go on.

    :ivar ended: set when there are no more messages
    """

    def __init__(self, read_stream: Any, write_stream: Any) -> None:
        self._read = read_stream
        self._write = write_stream
        self._waiting: dict[int | str, _Waiting] = {}
        self._numbers = 0
        self.closed = False
        self.ended = anyio.Event()

    def __repr__(self) -> str:
        return f"<Channel {len(self._waiting)} waiting{' closed' if self.closed else ''}>"

    async def send_raw_request(
        self, method: str, parameters: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request and return its result; of a tool's call it is in the exchange, and here is an empty one.

        :raises NoAnswer: if it is an error, or none comes
        """
        options = opts or {}
        exchange = current_exchange()
        if exchange is None or exchange.number is not None:
            exchange = Exchange()
        number = self._number(options)
        exchange.number = number
        if self.closed:
            raise NoAnswer(_CLOSED, exchange)
        waiting = self._waiting[number] = _Waiting(options.get("on_progress"))
        try:
            with in_exchange(exchange):
                outcome = await self._asked(_request(number, method, parameters, waiting), waiting, options)
        finally:
            del self._waiting[number]
            exchange.give_up()
        if isinstance(outcome, ErrorData):
            raise NoAnswer(outcome, exchange)
        exchange.result = outcome
        return dict(_ANY_RESULT.get(method) or outcome or {})

    def _number(self, options: CallOptions) -> int | str:
        stated = options.get("request_id")
        if stated is not None:
            return stated
        self._numbers += 1
        return self._numbers

    async def _asked(
        self, request: JSONRPCRequest, waiting: _Waiting, options: CallOptions
    ) -> dict[str, Any] | ErrorData | None:
        cancels = options.get("cancel_on_abandon", True)
        try:
            with anyio.move_on_after(options.get("timeout")):
                try:
                    await self._write.send(SessionMessage(request, _metadata(options)))
                except _LOST:
                    return _CLOSED
                await waiting.answered.wait()
                return waiting.outcome
        except anyio.get_cancelled_exc_class():
            if cancels:
                with anyio.move_on_after(_COURTESY, shield=True):
                    await self._cancelled(request, "the call was cancelled")
            raise
        if cancels:
            with anyio.move_on_after(_COURTESY):
                await self._cancelled(request, "the call took too long")
        return ErrorData(code=REQUEST_TIMEOUT, message="nothing came in time")

    async def _cancelled(self, request: JSONRPCRequest, reason: str) -> None:
        await self.notify("notifications/cancelled", {"requestId": request.id, "reason": reason})

    async def notify(self, method: str, parameters: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a message that is not answered; a server that does not take it in time goes without."""
        if self.closed:
            return
        body = {} if parameters is None else {"params": dict(parameters)}
        message = JSONRPCNotification(jsonrpc="2.0", method=method, **body)
        with in_exchange(Exchange(limit=_COURTESY)), suppress(*_LOST):
            await self._write.send(SessionMessage(message, _metadata(opts or {})))

    async def run(
        self,
        on_request: Any,
        on_notify: Any,
        on_notify_intercept: Any = None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Take in messages until there are no more; whatever still waits then is told that the connection is gone."""
        try:
            async with self._write, anyio.create_task_group() as tasks:
                task_status.started()
                async with self._read:
                    with suppress(anyio.ClosedResourceError):
                        async for item in self._read:
                            self._take(item, tasks, on_request, on_notify, on_notify_intercept)
                tasks.cancel_scope.cancel()
        finally:
            self.closed = True
            self.ended.set()
            for waiting in self._waiting.values():
                waiting.settle(_CLOSED)

    def _take(self, item: Any, tasks: TaskGroup, on_request: Any, on_notify: Any, intercept: Any) -> None:
        if isinstance(item, Exception):
            return
        match item.message:
            case JSONRPCResponse(id=number, result=result):
                self._settle(number, result)
            case JSONRPCError(id=number, error=error):
                self._settle(number, error)
            case JSONRPCRequest() as request:
                tasks.start_soon(self._answer, request, on_request)
            case JSONRPCNotification(method=method, params=params):
                if method == "notifications/progress":
                    self._progress(params or {}, tasks)
                elif intercept is None or not intercept(method, params):
                    tasks.start_soon(on_notify, _Inbound(), method, params)

    def _settle(self, number: int | str | None, outcome: dict[str, Any] | ErrorData) -> None:
        # Some servers give a number back as text.
        known = int(number) if isinstance(number, str) and number.isdecimal() else number
        waiting = self._waiting.get(known) if known is not None else None
        if waiting is not None:
            waiting.settle(outcome)

    def _progress(self, params: Mapping[str, Any], tasks: TaskGroup) -> None:
        token, done, total, text = (params.get(key) for key in ("progressToken", "progress", "total", "message"))
        waiting = self._waiting.get(token) if isinstance(token, int | str) else None
        if waiting is None or waiting.progress is None or not isinstance(done, int | float):
            return
        told = float(total) if isinstance(total, int | float) else None
        tasks.start_soon(waiting.progress, float(done), told, text if isinstance(text, str) else None)

    async def _answer(self, request: JSONRPCRequest, on_request: Any) -> None:
        """Answer what the server asks for while a call runs."""
        reply: JSONRPCResponse | JSONRPCError
        try:
            result = await on_request(_Inbound(request.id), request.method, request.params)
            reply = JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result)
        except MCPError as error:
            reply = JSONRPCError(jsonrpc="2.0", id=request.id, error=error.error)
        except ValueError as error:
            _log.info("a request of an MCP server is not valid: %s", type(error).__name__)
            invalid = ErrorData(code=INTERNAL_ERROR, message="the request is not valid")
            reply = JSONRPCError(jsonrpc="2.0", id=request.id, error=invalid)
        with in_exchange(Exchange(limit=_COURTESY)), suppress(*_LOST):
            await self._write.send(SessionMessage(reply))


class _Inbound:
    """What a session is told of a message from the server: its id, if it is to be answered."""

    def __init__(self, request_id: int | str | None = None) -> None:
        self.request_id = request_id


def _request(number: int | str, method: str, parameters: Mapping[str, Any] | None, waiting: _Waiting) -> JSONRPCRequest:
    body = dict(parameters or {})
    meta = {**(body.get("_meta") or {}), **trace_meta()}
    if waiting.progress is not None:
        meta["progressToken"] = number
    if meta:
        body["_meta"] = meta
    stated = {"params": body} if body else {}
    return JSONRPCRequest(jsonrpc="2.0", id=number, method=method, **stated)


def _metadata(options: CallOptions) -> ClientMessageMetadata | None:
    headers = options.get("headers")
    return ClientMessageMetadata(headers=headers) if headers else None
