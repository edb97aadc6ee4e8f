"""Reading on: the pages of one call, as one list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from math import ceil
from typing import Any, Final, TypeAlias

import anyio
import msgspec

from engine.api.decoding import Content, decoded
from engine.api.large_bodies import worked
from engine.api.next_page import End, following, searched
from engine.api.operation import Operation
from engine.api.pages import ARGUMENT
from engine.api.request import OutgoingRequest
from engine.api.response import projected
from engine.api.signing import Signed
from engine.api.token_request import NoToken
from engine.net.errors import NetError
from engine.net.reply import Reply
from engine.pacing.rate import TooSoon

__all__ = ("Collected", "Page", "PageReader", "read_page")

_MORE: Final = "There is more: call it again with the same arguments and those in next."
_NO_WAY: Final = f"There is more, but no call can begin there: only a larger {ARGUMENT} reads on."

Send: TypeAlias = Callable[[OutgoingRequest, Signed, float, int], Awaitable[Reply]]
"""Sends a request within (seconds, bytes)."""


class Page(msgspec.Struct, frozen=True):
    """One response as a page.

    :ivar content: decoded
    :ivar items: what its list holds, projected; None: there is no list
    :ivar onward: the request for the next
    """

    reply: Reply
    content: Content
    items: list[Any] | None
    onward: OutgoingRequest | End


class Collected(msgspec.Struct):
    """What the pages of a call hold.

    :ivar count: of pages
    :ivar size: bytes of their bodies
    :ivar onward: the request for the first page that was not read; None: there is none
    :ivar note: why it was not, and what else there is to say
    """

    items: list[Any]
    count: int
    size: int
    onward: OutgoingRequest | None = None
    note: str = ""

    def said(self, wanted: int, is_list: bool, has_way: bool) -> str:
        """Return what a result's message says of it.

        :param wanted: pages
        :param is_list: whether the first had a list of items
        :param has_way: whether a call can begin where this one ended
        """
        if not is_list:
            return self.note if wanted == 1 else "It has no list of items, so no further page was read."
        more = "" if self.onward is None else _MORE if has_way else _NO_WAY
        if wanted == 1:
            return self.note or more
        read = "1 page was read." if self.count == 1 else f"{self.count} pages were read."
        return " ".join(filter(None, (read, self.note, more)))


async def read_page(operation: Operation, request: OutgoingRequest, parts: Signed, reply: Reply) -> Page:
    """Return a reply as a page; a large one is decoded in a thread."""
    return await worked(partial(_page, operation, request, parts.url, reply), len(reply.body))


def _page(operation: Operation, request: OutgoingRequest, url: str, reply: Reply) -> Page:
    content = decoded(reply)
    if operation.pages is not None and reply.status == 204:
        return Page(reply, content, [], End())
    if operation.pages is None or not 200 <= reply.status < 300 or content.kind != "json":
        return Page(reply, content, None, End())
    kept = projected(content, operation.project).data
    items = searched(operation.pages.items, kept) if operation.pages.items else kept
    known = items if isinstance(items, list) else None
    onward = following(operation, request, url, reply, content.data, known or [])
    return Page(reply, content, known, onward)


class PageReader:
    """Reads the pages after a first one, within one time and one number of bytes for all."""

    def __init__(
        self,
        operation: Operation,
        sign: Callable[[OutgoingRequest], Signed],
        send: Send,
        *,
        deadline: float,
        largest: int,
    ) -> None:
        """Take what all pages have in common.

        :param sign: puts the credentials in
        :param deadline: a moment of AnyIO's clock
        :param largest: bytes of all bodies together
        """
        self._operation = operation
        self._sign = sign
        self._send = send
        self._deadline = deadline
        self._left = largest

    async def collected(self, first: Page, request: OutgoingRequest, wanted: int) -> Collected:
        """Return the items of a first page and of those after it; whatever goes wrong with these is said in ``note``.

        :param request: that the first page answers
        :param wanted: pages, the first included
        """
        found = Collected(list(first.items or ()), 1, len(first.reply.body))
        seen = {(request.path, request.query)}
        self._left -= len(first.reply.body)
        page = first
        while isinstance(page.onward, OutgoingRequest):
            onward = page.onward
            if (onward.path, onward.query) in seen:
                found.note = "The next page would be one that was read already, so it was not read again."
                return found
            seen.add((onward.path, onward.query))
            found.onward = onward
            if found.count == wanted:
                return found
            following_page = await self._next(onward, found.count + 1)
            if isinstance(following_page, str):
                found.note = following_page
                return found
            page = following_page
            found.items += page.items or ()
            found.count += 1
            found.size += len(page.reply.body)
            found.onward = None
        found.note = page.onward.note
        return found

    async def _next(self, request: OutgoingRequest, number: int) -> Page | str:
        """Return a page, or why there is none."""
        unread = f"Page {number} was not read"
        seconds = self._deadline - anyio.current_time()
        if seconds <= 0 or self._left <= 0:
            return f"{unread}: there was no {'time' if seconds <= 0 else 'room'} left for it."
        try:
            parts = self._sign(request)
            reply = await self._send(request, parts, seconds, self._left)
        except TooSoon as error:
            return f"{unread}: the action's rate has no turn for it; try again in {ceil(error.seconds)} s."
        except (NoToken, NetError) as error:
            return f"{unread}: {str(error).rstrip('.')}."
        self._left -= len(reply.body)
        if not 200 <= reply.status < 300:
            return f"{unread}: HTTP status {reply.status}."
        if reply.is_cut:
            return f"{unread}: with it, the pages would be larger than one response may be."
        page = await read_page(self._operation, request, parts, reply)
        return page if page.items is not None else f"{unread}: it has no list of items."
