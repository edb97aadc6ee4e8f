"""Sending: a signed request through the one way out, and its reply as far as it is read."""

from __future__ import annotations

from functools import partial

import anyio

from engine.api.request import OutgoingRequest
from engine.api.retrying import retried
from engine.api.signing import Signed
from engine.net.client import SafeClient
from engine.net.errors import ResponseTooLarge
from engine.net.reply import Reply

__all__ = ("sent",)


async def sent(client: SafeClient, request: OutgoingRequest, parts: Signed, seconds: float) -> Reply:
    """Send a request, again where it may be and that may help, and return its reply; redirects are not followed.

    Of a body that is too large the beginning is returned, as ``is_cut``.

    :param seconds: for all of it together
    :raises NetError: if no reply came
    """
    deadline = anyio.current_time() + seconds
    send = partial(_send, client, request, parts, deadline)
    return await (retried(send, deadline) if request.repeatable else send())


async def _send(client: SafeClient, request: OutgoingRequest, parts: Signed, deadline: float) -> Reply:
    async with client.stream(
        request.method,
        parts.url,
        headers=parts.headers,
        content=request.content,
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
