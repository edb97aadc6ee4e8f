"""Telegram's bot interface: requests sent one after another, and what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from engine.contract import ToolResult
from engine.net.reply import Reply
from engine.remote.exchange import NOT_DONE, Exchange
from engine.remote.request import RemoteRequest
from engine.remote.service_error import ServiceError

__all__ = ("Sent", "TelegramBot")


class Sent(msgspec.Struct, frozen=True):
    """What of a call was sent.

    :ivar message_ids: of the messages that were
    :ivar error: why the rest was not; None: all were
    :ivar status: the last HTTP status; None: there was no response
    """

    message_ids: tuple[Any, ...]
    error: str | None
    status: int | None

    def result(self, done: str, wanted: int) -> ToolResult:
        """Return it as the call's result: an error unless everything was sent."""
        ids = list(self.message_ids)
        if self.error is None:
            return ToolResult({"status_code": self.status, "message": done, "message_ids": ids})
        said = f"{done.split()[0]} not sent: {self.error}"
        if ids:
            said = f"{len(ids)} of {wanted} messages sent, then: {self.error}"
        return ToolResult({"status_code": self.status, "message": said, "message_ids": ids}, status="error")


class TelegramBot:
    """Sends in order, and stops at the first that is refused: what was sent stays sent."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    async def sent(self, requests: Sequence[RemoteRequest]) -> Sent:
        """Send them; one is sent again only where it certainly was not taken: no connection, or 429."""
        ids: list[Any] = []
        status: int | None = None
        for request in requests:
            try:
                reply = await self._exchange.reply(request, statuses=NOT_DONE, read=_with_wait)
                content, status = self._exchange.content(reply), reply.status
                if not (isinstance(content, dict) and content.get("ok") is True and 200 <= reply.status < 300):
                    raise self._exchange.refusal(reply, _reason(content))
            except ServiceError as error:
                return Sent(tuple(ids), str(error), error.status)
            result = content.get("result")
            ids.append(result.get("message_id") if isinstance(result, dict) else None)
        return Sent(tuple(ids), None, status)


def _with_wait(reply: Reply) -> Reply:
    """Return a reply that says when to try again where every other service does: in a header."""
    if reply.status not in NOT_DONE or reply.header("retry-after"):
        return reply
    try:
        wait = msgspec.json.decode(reply.body)["parameters"]["retry_after"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return reply
    if not isinstance(wait, int) or isinstance(wait, bool) or wait < 0:
        return reply
    return msgspec.structs.replace(reply, headers=(*reply.headers, ("Retry-After", str(wait))))


def _reason(content: Any) -> str | None:
    if not isinstance(content, dict):
        return None
    described = content.get("description")
    said = described if isinstance(described, str) else ""
    parameters = content.get("parameters")
    moved = parameters.get("migrate_to_chat_id") if isinstance(parameters, dict) else None
    return f"{said}; the group has become the chat {moved}, which its owner must configure" if moved else said
