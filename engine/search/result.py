"""Results as every search tool returns them: one form, plain text, bounded, each page once."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from engine.preview import cut_text
from engine.search.query import SearchQuery

__all__ = ("TOTAL", "SearchResult", "host_of", "plain", "tidied")

TOTAL: Final = 48_000
"""Characters of all results of a search together."""

_TITLE: Final = 300
_SNIPPET: Final = 1000
_URL: Final = 2000
_SHORT: Final = 200
_TAG: Final = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
_TRACKING: Final = frozenset({"fbclid", "gclid", "msclkid", "mc_cid", "mc_eid", "igshid"})


class SearchResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One result.

    :ivar url: of the page
    :ivar published: when, as the service says it; None: it does not
    :ivar source: who published it: a name, or the page's host
    :ivar image: of an image's result: its own address
    :ivar thumbnail: of an image's result: a small copy's address
    """

    title: str
    url: str
    snippet: str
    published: str | None
    source: str
    image: str | None = None
    thumbnail: str | None = None
    width: int | None = None
    height: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as the tool's result has it."""
        content: dict[str, Any] = msgspec.to_builtins(self)
        return content

    @property
    def size(self) -> int:
        """Characters that it takes."""
        return sum(len(text) for text in msgspec.structs.astuple(self) if isinstance(text, str)) + 80


def plain(text: Any, longest: int = _SNIPPET) -> str:
    """Return a service's text without markup, entities and line breaks, bounded; what is no text is empty."""
    if not isinstance(text, str):
        return ""
    words = html.unescape(_TAG.sub("", text)).split()
    return cut_text("".join(filter(str.isprintable, " ".join(words))), longest)


def host_of(url: str) -> str:
    """Return an address's host without ``www.``; empty: it has none."""
    try:
        return (urlsplit(url).hostname or "").lower().removeprefix("www.")
    except ValueError:
        return ""


def tidied(results: Iterable[SearchResult], query: SearchQuery) -> list[SearchResult]:
    """Return the results in their order, each page once, within the query's domains and count, texts bounded.

    Together they have at most :data:`TOTAL` characters: those that do not fit are left out, from the last on.
    """
    kept: dict[str, SearchResult] = {}
    room = TOTAL
    for result in results:
        if len(kept) == query.count:
            break
        url = result.url.strip()
        if not _is_page(url) or not _is_within(host_of(url), query):
            continue
        tidy = _bounded(result, url)
        key = _key(tidy.image or url)
        if key in kept:
            continue
        room -= tidy.size
        if room < 0:
            break
        kept[key] = tidy
    return list(kept.values())


def _bounded(result: SearchResult, url: str) -> SearchResult:
    return msgspec.structs.replace(
        result,
        title=plain(result.title, _TITLE) or host_of(url),
        url=url,
        snippet=plain(result.snippet),
        published=plain(result.published, _SHORT) or None,
        source=plain(result.source, _SHORT) or host_of(url),
        image=result.image if result.image and _is_page(result.image) else None,
        thumbnail=result.thumbnail if result.thumbnail and _is_page(result.thumbnail) else None,
    )


def _is_page(url: str) -> bool:
    # Of an address that must be shortened nothing could be opened.
    return url.startswith(("http://", "https://")) and len(url) <= _URL and url.isprintable() and bool(host_of(url))


def _is_within(host: str, query: SearchQuery) -> bool:
    def below(domains: tuple[str, ...]) -> bool:
        return any(host == domain or host.endswith(f".{domain}") for domain in domains)

    return (not query.only or below(query.only)) and not below(query.without)


def _key(url: str) -> str:
    """Return what two addresses of one page have in common: no fragment, no trackers, http as https."""
    parts = urlsplit(url)
    query = [
        (name, value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        if name.lower() not in _TRACKING and not name.lower().startswith("utm_")
    ]
    return urlunsplit(("https", host_of(url), parts.path.rstrip("/"), urlencode(query), ""))
