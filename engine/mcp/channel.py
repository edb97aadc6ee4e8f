"""Requests and their answers, many at once: the part of an MCP client below its session.

The library has one of its own, which opens a second span for every call, and hands results on only if it knows every
kind of content in them. This one does neither, and tells what became of a request on the wire.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup, TaskStatus
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, REQUEST_TIMEOUT, ErrorData

from engine.mcp.exchange import Exchange, current_exchange
from engine.mcp.transport import Transport
from engine.telemetry import trace_meta

__all__ = ("Channel", "NoAnswer")

_COURTESY: Final = 2.0
"""Seconds for a message that nobody waits for."""

_ASKED: Final = 64
"""Requests of a server that are answered at once; what it asks beyond that is left unanswered."""

_ANY_RESULT: Final[Mapping[str, dict[str, Any]]] = {"tools/call": {"content": [], "resultType": "complete"}}
_CLOSED: Final = ErrorData(code=CONNECTION_CLOSED, message="the connection is closed")
_SILENT: Final = ErrorData(code=INTERNAL_ERROR, message="there was no answer")
_LATE: Final = ErrorData(code=REQUEST_TIMEOUT, message="nothing came in time")


class NoAnswer(MCPError):
    """A request was not answered, or not with a result.

    :ivar exchange: what is known of it
    :ivar cut: the connection is gone
    :ivar said: it is the server's own error
    """

    def __init__(self, error: ErrorData, exchange: Exchange) -> None:
        super().__init__(error.code, error.message, error.data)
        self.exchange = exchange
        self.cut = error is _CLOSED
        self.said = not (self.cut or error is _SILENT or error is _LATE)


class _Waiting:
    """A request whose answer is awaited."""

    def __init__(self, progress: Any) -> None:
        self.progress = progress
        self.answered = anyio.Event()
        self.outcome: dict[str, Any] | ErrorData | None = None
        self.sending: anyio.CancelScope | None = None

    def cut(self) -> None:
        """Give up an answer that is still to come: the connection is gone."""
        self.settle(_CLOSED)
        if self.sending is not None:
            self.sending.cancel()

    def settle(self, outcome: dict[str, Any] | ErrorData) -> None:
        if self.outcome is None:
            self.outcome = outcome
            self.answered.set()


class _Inbound:
    """What a session is told of a request from the server: its id."""

    def __init__(self, request_id: int | str) -> None:
        self.request_id = request_id


class Channel:
    """What a ``ClientSession`` takes as its ``dispatcher``.

    A request is sent in the task that makes it. Cancelled, or out of time, it gives its connection up and tells the
    server so; the others go on.

    :ivar ended: set when there are no more messages
    """

    def __init__(self, transport: Transport, list_changed: Callable[[], None]) -> None:
        """Begin with :meth:`run`.

        :param list_changed: called when the server says that its list of tools has changed, before what it says next
        """
        self._transport = transport
        self._list_changed = list_changed
        self._waiting: dict[int | str, _Waiting] = {}
        self._numbers = 0
        self._tasks: TaskGroup | None = None
        self._on_request: Any = None
        self._answering = 0
        self.ended = anyio.Event()

    def __repr__(self) -> str:
        return f"<Channel {len(self._waiting)} waiting{' closed' if self.closed else ''}>"

    @property
    def closed(self) -> bool:
        """Whether there are no more messages."""
        return self.ended.is_set()

    async def run(
        self,
        on_request: Any,
        on_notify: Any,  # noqa: ARG002
        on_notify_intercept: Any = None,  # noqa: ARG002
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Take in messages until there are no more; whatever still waits then is told that the connection is gone.

        The session has no use for notifications: those that matter are taken here.

        :raises NoStream: if the server's messages have no way here
        """
        self._on_request = on_request
        try:
            async with anyio.create_task_group() as self._tasks:
                await self._transport.open(self._take, self._tasks)
                task_status.started()
                await self._transport.lost()
                self._tasks.cancel_scope.cancel()
        finally:
            self._tasks = None
            self.ended.set()
            for waiting in self._waiting.values():
                waiting.cut()

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
        number = exchange.number = self._number(options)
        exchange.method = method
        if self.closed:
            raise NoAnswer(_CLOSED, exchange)
        waiting = self._waiting[number] = _Waiting(options.get("on_progress"))
        try:
            outcome = await self._asked(_request(number, method, parameters, waiting), waiting, options, exchange)
        finally:
            del self._waiting[number]
        if isinstance(outcome, ErrorData):
            raise NoAnswer(outcome, exchange)
        exchange.result = outcome
        return dict(_ANY_RESULT.get(method) or outcome)

    def _number(self, options: CallOptions) -> int | str:
        stated = options.get("request_id")
        if stated is not None:
            return stated
        self._numbers += 1
        return self._numbers

    async def _asked(
        self, content: dict[str, Any], waiting: _Waiting, options: CallOptions, exchange: Exchange
    ) -> dict[str, Any] | ErrorData:
        try:
            with anyio.move_on_after(options.get("timeout")) as waiting.sending:
                comes = await self._transport.post(content, options.get("headers") or {}, exchange)
                if comes:
                    await waiting.answered.wait()
                return waiting.outcome or _SILENT
            if waiting.outcome is not None:
                return waiting.outcome
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._give_up(content["id"], options)
            raise
        await self._give_up(content["id"], options)
        return _LATE

    async def _give_up(self, number: int | str, options: CallOptions) -> None:
        if options.get("cancel_on_abandon", True):
            parameters = {"requestId": number, "reason": "nobody waits for it any more"}
            await self.notify("notifications/cancelled", parameters)

    async def notify(self, method: str, parameters: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a message that is not answered; a server that does not take it in time goes without."""
        body = {} if parameters is None else {"params": dict(parameters)}
        await self._told({"jsonrpc": "2.0", "method": method, **body}, (opts or {}).get("headers") or {})

    async def _told(self, content: dict[str, Any], headers: Mapping[str, str]) -> None:
        if not self.closed:
            with anyio.move_on_after(_COURTESY):
                await self._transport.post(content, headers, Exchange())

    def _take(self, message: dict[str, Any]) -> None:
        method, number, parameters = message.get("method"), message.get("id"), message.get("params")
        if method is None:
            self._settle(number, message)
        elif self._tasks is None or not isinstance(method, str):
            return
        elif number is not None:
            if self._answering < _ASKED:
                self._answering += 1
                self._tasks.start_soon(self._answer, number, method, parameters)
        elif method == "notifications/tools/list_changed":
            self._list_changed()
        elif method == "notifications/progress":
            self._progress(parameters if isinstance(parameters, dict) else {}, self._tasks)

    def _settle(self, number: Any, message: dict[str, Any]) -> None:
        # Some servers give a number back as text.
        known = int(number) if isinstance(number, str) and number.isdecimal() else number
        waiting = self._waiting.get(known) if isinstance(known, int | str) else None
        result, error = message.get("result"), message.get("error")
        if waiting is None:
            return
        if isinstance(result, dict):
            waiting.settle(result)
        elif isinstance(error, dict):
            waiting.settle(_error(error))

    def _progress(self, told: dict[str, Any], tasks: TaskGroup) -> None:
        token, done, total, text = (told.get(key) for key in ("progressToken", "progress", "total", "message"))
        waiting = self._waiting.get(token) if isinstance(token, int | str) else None
        if waiting is None or waiting.progress is None or not isinstance(done, int | float):
            return
        whole = float(total) if isinstance(total, int | float) else None
        tasks.start_soon(waiting.progress, float(done), whole, text if isinstance(text, str) else None)

    async def _answer(self, number: Any, method: str, parameters: Any) -> None:
        """Answer what the server asks for while a call runs."""
        try:
            reply = await self._reply(number, method, parameters)
            await self._told({"jsonrpc": "2.0", "id": number, **reply}, {})
        finally:
            self._answering -= 1

    async def _reply(self, number: Any, method: str, parameters: Any) -> dict[str, Any]:
        try:
            return {"result": await self._on_request(_Inbound(number), method, parameters)}
        except MCPError as error:
            return {"error": error.error.model_dump(mode="json", exclude_none=True)}
        except ValueError:
            return {"error": {"code": INTERNAL_ERROR, "message": "the request is not valid"}}


def _request(number: int | str, method: str, parameters: Mapping[str, Any] | None, waiting: _Waiting) -> dict[str, Any]:
    body = dict(parameters or {})
    meta = {**(body.get("_meta") or {}), **trace_meta()}
    if waiting.progress is not None:
        meta["progressToken"] = number
    if meta:
        body["_meta"] = meta
    stated = {"params": body} if body else {}
    return {"jsonrpc": "2.0", "id": number, "method": method, **stated}


def _error(stated: dict[str, Any]) -> ErrorData:
    code, text = stated.get("code"), stated.get("message")
    return ErrorData(
        code=code if isinstance(code, int) else INTERNAL_ERROR,
        message=text if isinstance(text, str) and text else "it does not say why",
        data=stated.get("data"),
    )
