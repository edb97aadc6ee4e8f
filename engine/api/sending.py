"""Sending: a signed request through the one way out, and its reply as far as it is read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

import anyio

from engine.api.request import OutgoingRequest
from engine.api.retrying import retried
from engine.api.signing import Signed
from engine.net.client import SafeClient
from engine.net.errors import ResponseTooLarge
from engine.net.reply import Reply
from engine.pacing.rate import TooSoon

__all__ = ("Turn", "sent")

Turn: TypeAlias = Callable[[float], Awaitable[None]]
"""Waits for the turn of a request, at most so many seconds; raises ``TooSoon`` if that is not enough."""


async def sent(
    client: SafeClient,
    request: OutgoingRequest,
    parts: Signed,
    seconds: float,
    turn: Turn | None = None,
    *,
    largest: int | None = None,
) -> Reply:
    """Send a request, again where it may be and that may help, and return its reply; redirects are not followed.

    Of a body that is too large the beginning is returned, as ``is_cut``.

    :param seconds: for all of it together
    :param turn: waited for before each attempt; where there is none in time, what the attempt before brought counts
    :param largest: bytes of the body, within the policy's limit; None: that
    :raises TooSoon: if there was no turn for the first: nothing was sent
    :raises NetError: if no reply came
    """
    deadline = anyio.current_time() + seconds
    send: Callable[[], Awaitable[Reply]] = partial(_send, client, request, parts, deadline, largest)
    if turn is not None:
        send = _InTurn(send, turn, deadline)
    return await (retried(send, deadline) if request.repeatable else send())


class _InTurn:
    """Sends when its turn has come."""

    def __init__(self, send: Callable[[], Awaitable[Reply]], turn: Turn, deadline: float) -> None:
        self._send = send
        self._turn = turn
        self._deadline = deadline
        self._last: Reply | None = None

    async def __call__(self) -> Reply:
        try:
            await self._turn(max(0.0, self._deadline - anyio.current_time()))
        except TooSoon:
            if self._last is None:
                raise
            return self._last
        self._last = await self._send()
        return self._last


async def _send(
    client: SafeClient, request: OutgoingRequest, parts: Signed, deadline: float, largest: int | None
) -> Reply:
    async with client.stream(
        request.method,
        parts.url,
        headers=parts.headers,
        content=request.content,
        largest=largest,
        deadline=max(0.0, deadline - anyio.current_time()),
        secret_headers=parts.secret_headers,
    ) as answer:
        if answer.status >= 400:
            return await answer.read()
        body, is_cut = bytearray(), False
        try:
            async for piece in answer:
                body += piece
        except ResponseTooLarge:
            # What was asked for has been done: the beginning says more than an error would.
            is_cut = True
        return answer.replied(body, is_cut)
    raise AssertionError("the block above always returns")
