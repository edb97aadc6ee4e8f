"""Pages read: fetched, told what they are, converted, and kept for a while so that reading on reads the same page."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from typing import Final

import msgspec

from engine.net.client import safe_client
from engine.net.errors import NetError
from engine.net.outgoing import Outgoing
from engine.net.reply import Reply
from engine.readable import decoded
from engine.services import Services
from engine.web.article import read_whole
from engine.web.conversion import Conversion, has_module
from engine.web.document import Unreadable, WebDocument, clipped
from engine.web.kind import DOCUMENTS, kind_of

__all__ = ("LARGEST", "KeptPages", "ReadPage", "Wanted", "read_page", "request_of")

LARGEST: Final = 10 * 1024 * 1024
"""Bytes of a page, decoded, that are taken in."""

FETCHING: Final = 25.0
"""Seconds for the request, its redirects included."""

_ACCEPTED: Final = "text/html, text/*;q=0.9, application/xhtml+xml, application/json, application/xml;q=0.8, */*;q=0.1"
_NOT_MODIFIED: Final = 304
_TAG: Final = re.compile(r'(?:W/)?"[!#-~]{1,200}"')
_SHORT: Final = 4 * 1024
"""Bytes of HTML in which there is nothing around an article that would be worth leaving out."""
_KEPT: Final = 32
_KEPT_CHARACTERS: Final = 8_000_000
_KEPT_SECONDS: Final = 300.0


class Wanted(msgspec.Struct, frozen=True):
    """A page that is asked for.

    :ivar user_id: who asks; what one user was given is never another's
    :ivar whole: all that is on it, not the article alone
    """

    url: str
    user_id: str | None
    whole: bool


class ReadPage(msgspec.Struct, frozen=True):
    """A page, and where it was in the end.

    :ivar tag: the ETag by which the server knows whether it has changed; "": it gave none, or has the page elsewhere
    """

    url: str
    document: WebDocument
    tag: str = ""


class KeptPages:
    """The pages that were read last, for five minutes each; longer for who asks their servers. One per engine."""

    def __init__(self, services: Services) -> None:  # noqa: ARG002 - as everything is made that is shared
        self._pages: OrderedDict[Wanted, tuple[float, ReadPage]] = OrderedDict()

    def found(self, wanted: Wanted, now: float) -> ReadPage | None:
        """Return a page that is not too old."""
        kept = self._pages.get(wanted)
        return kept[1] if kept is not None and now - kept[0] <= _KEPT_SECONDS else None

    def last(self, wanted: Wanted) -> ReadPage | None:
        """Return a page however old it is, to ask the server whether it is still that."""
        kept = self._pages.get(wanted)
        return kept[1] if kept is not None else None

    def keep(self, wanted: Wanted, page: ReadPage, now: float) -> None:
        """Keep a page; the oldest go."""
        self._pages.pop(wanted, None)
        self._pages[wanted] = (now, page)
        while len(self._pages) > _KEPT or self._characters > _KEPT_CHARACTERS:
            self._pages.popitem(last=False)

    @property
    def _characters(self) -> int:
        return sum(len(page.document.text) for _, page in self._pages.values())


async def read_page(services: Services, wanted: Wanted, *, again: bool) -> ReadPage:
    """Return a page.

    :param again: whether it is fetched although it was read a moment ago
    :raises NetError: if it cannot be fetched, or there is no such page
    :raises Unreadable: if it is nothing that can be read
    """
    pages, now = services.shared(KeptPages), time.monotonic()
    if not again and (kept := pages.found(wanted, now)) is not None:
        return kept
    known = pages.last(wanted)
    reply = await services.shared(safe_client).request(
        "GET",
        _address(wanted.url),
        headers=(("Accept", _ACCEPTED), *((("If-None-Match", known.tag),) if known is not None and known.tag else ())),
        follow=True,
        largest=min(LARGEST, services.net.largest),
        deadline=FETCHING,
    )
    if reply.status == _NOT_MODIFIED and known is not None and known.tag:
        page = known
    elif reply.status >= 400 or reply.status == _NOT_MODIFIED:
        raise NetError(f"HTTP status {reply.status}")
    else:
        page = ReadPage(reply.url, await _document(services, reply, wanted.whole), _tag(reply))
    pages.keep(wanted, page, now)
    return page


def request_of(services: Services, url: str) -> str:
    """Return the request for a page as HTTP/1.1 has it. :raises UnsafeUserUrlError: if the URL is none"""
    sent = Outgoing.of("GET", _address(url), (("Accept", _ACCEPTED),), None, services.net.user_agent)
    lines = [f"GET {sent.url.raw_path.decode('ascii')} HTTP/1.1"]
    return "\n".join([*lines, f"Host: {sent.url.netloc.decode('ascii')}", *(f"{k}: {v}" for k, v in sent.headers)])


def _tag(reply: Reply) -> str:
    tag = reply.header("etag") or ""
    # Of what redirects led to, the address that is asked knows nothing.
    return tag if reply.hops == 0 and _TAG.fullmatch(tag) else ""


def _address(url: str) -> str:
    return url if "://" in url else f"https://{url}"


async def _document(services: Services, reply: Reply, whole: bool) -> WebDocument:
    kind = kind_of(reply.body, reply.content_type, reply.charset)
    if kind in DOCUMENTS:
        what, module = DOCUMENTS[kind]
        return await _converted(services, reply, kind, what, module)
    text = decoded(reply.body, reply.charset)
    if kind != "html":
        shown, cut = clipped([text])
        return WebDocument(form="JSON" if kind == "json" else "text", text=shown, cut=cut)
    if len(reply.body) <= _SHORT:
        return read_whole(text.encode(), reply.url)
    how = "article" if not whole and has_module("trafilatura") else "html"
    return await _converted(services, reply, how, "a page", None, text.encode())


async def _converted(
    services: Services, reply: Reply, how: str, what: str, module: str | None, body: bytes | None = None
) -> WebDocument:
    problem = f"{module} is not installed; the operator must install calljournal[documents]"
    if module is None or has_module(module):
        try:
            return await services.shared(Conversion).document(how, reply.body if body is None else body, reply.url)
        except Unreadable as error:
            problem = str(error)
    raise Unreadable(f"URL returned {what}, which cannot be read: {problem}.")
