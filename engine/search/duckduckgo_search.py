"""DuckDuckGo: the ddgs library says what to request and reads the response; the requests are the engine's own."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec
from anyio import from_thread, to_thread

from engine.readable import decoded
from engine.remote.exchange import Exchange
from engine.remote.request import RemoteRequest
from engine.remote.service_error import ServiceError
from engine.search.ddgs_pages import Page, Unreadable, Wanted, results_content
from engine.search.query import SearchKind, SearchQuery
from engine.search.result import SearchResult, host_of

__all__ = ("LONGEST", "MOST", "DuckDuckGoSearch")

LONGEST: Final = 500
"""Characters of a query."""

MOST: Final[Mapping[SearchKind, int]] = MappingProxyType({"web": 20, "image": 50, "news": 20})
"""Results of one search."""

_HOSTS: Final = ("duckduckgo.com", "html.duckduckgo.com")
_ROBOT: Final = (202, 403)
_CHALLENGES: Final = ("anomaly-modal", "anomaly.js", "challenge-form", "bots use duckduckgo")
_NOTHING: Final = ("no-results", "result--no-result")
_TOKEN: Final = "(from-the-first-reply)"  # noqa: S105  # it stands in a preview for what a page hands out
_BLOCKED: Final = "DuckDuckGo takes the search for a robot's and asks for a person; try again later, or otherwise."


class DuckDuckGoSearch(msgspec.Struct, frozen=True, kw_only=True):
    """Access without a key.

    :ivar address: of duckduckgo.com, without a slash at its end
    :ivar html_address: of html.duckduckgo.com, where web results are
    """

    address: str
    html_address: str
    safesearch: str
    per_second: int = 1

    name = "DuckDuckGo"

    @property
    def place(self) -> Hashable:
        """It knows us by nothing but where we come from: all rows are one place."""
        return "duckduckgo", self.address, self.html_address, self.safesearch

    async def found(self, query: SearchQuery, exchange: Exchange) -> list[SearchResult]:
        """Search, in a worker thread that comes back here for every request: it ends when the call does."""
        pages: list[Page] = []

        async def fetched(wanted: Wanted) -> Page:
            pages.append(await self._page(wanted, exchange))
            return pages[-1]

        def fetch(wanted: Wanted) -> Page:
            return from_thread.run(fetched, wanted)

        try:
            found = await to_thread.run_sync(self._read, query, fetch)
        except Unreadable as error:
            raise _unusable(pages, f"something that cannot be read ({error})") from None
        results = [result for item in found if (result := _result(query.kind, item)) is not None]
        if not results and query.kind == "web" and not any(mark in pages[-1].text for mark in _NOTHING):
            raise _unusable(pages, "a page that is none of results")
        return results

    def preview(self, query: SearchQuery) -> str:
        """Return the requests; images and news need a token, which the first one's reply holds."""
        wanted: list[Wanted] = []

        def noted(request: Wanted) -> Page:
            wanted.append(request)
            first = f'vqd="{_TOKEN}"'
            return Page(200 if len(wanted) == 1 and query.kind != "web" else 204, first, first.encode())

        self._read(query, noted)
        return "\n".join(self._request(each).preview() for each in wanted)

    def _read(self, query: SearchQuery, fetch: Any) -> list[dict[str, Any]]:
        options = dict(query.options)
        return results_content(
            query.kind,
            fetch,
            text=query.operators(LONGEST),
            region=options.get("region", "wt-wt"),
            safesearch="on" if self.safesearch == "strict" else self.safesearch,
            since=options.get("timelimit"),
            page=query.page + 1,
        )

    async def _page(self, wanted: Wanted, exchange: Exchange) -> Page:
        reply = await exchange.reply(self._request(wanted), follow=True)
        if reply.status in _ROBOT:
            raise ServiceError(_BLOCKED, reply.status)
        if reply.status != 200:
            raise exchange.refusal(reply, "")
        return Page(reply.status, decoded(reply.body, reply.charset), reply.body)

    def _request(self, wanted: Wanted) -> RemoteRequest:
        """Return the request that the library wants, at the configured addresses.

        :raises ServiceError: if it is for another host
        """
        parts = urlsplit(wanted.url)
        if parts.hostname not in _HOSTS:
            raise ServiceError("the ddgs library asks for a host that is not DuckDuckGo's; another version is needed")
        address = self.address if parts.hostname == _HOSTS[0] else self.html_address
        url = f"{address}{parts.path or '/'}" + (f"?{urlencode(wanted.query)}" if wanted.query else "")
        headers = tuple(wanted.headers.items())
        if wanted.form is None:
            return RemoteRequest(method=wanted.method, url=url, headers=headers)
        content = urlencode(wanted.form).encode()
        headers = (*headers, ("Content-Type", "application/x-www-form-urlencoded"))
        return RemoteRequest(method=wanted.method, url=url, headers=headers, content=content)


def _unusable(pages: list[Page], what: str) -> ServiceError:
    """Return what a reply without results means: a page that asks for a person says 200 too."""
    if any(mark in page.text.lower() for page in pages for mark in _CHALLENGES):
        return ServiceError(_BLOCKED, _ROBOT[0])
    return ServiceError(f"DuckDuckGo responded with {what}.")


def _result(kind: SearchKind, item: dict[str, Any]) -> SearchResult | None:
    url = _target(_text(item, "href") or _text(item, "url"))
    if not url:
        return None
    return SearchResult(
        title=_text(item, "title"),
        url=url,
        snippet=_text(item, "body"),
        published=_moment(item.get("date")),
        source=(_text(item, "source") if kind == "news" else "") or host_of(url),
        image=(_text(item, "image") or None) if kind == "image" else None,
        thumbnail=(_text(item, "thumbnail") or None) if kind == "image" else None,
        width=_size(item.get("width")),
        height=_size(item.get("height")),
    )


def _target(href: str) -> str:
    """Return where a link leads; some go by way of DuckDuckGo's own redirect."""
    if href.startswith("//"):
        href = f"https:{href}"
    parts = urlsplit(href) if href.isprintable() else urlsplit("")
    if (parts.hostname or "").endswith("duckduckgo.com") and parts.path.startswith("/l/"):
        return next(iter(parse_qs(parts.query).get("uddg", [])), "")
    return href


def _moment(value: Any) -> str | None:
    """Return when a news item is from: Unix seconds, or a text."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**11:
        return datetime.fromtimestamp(value, UTC).isoformat()
    return value if isinstance(value, str) and value else None


def _text(item: dict[str, Any], name: str) -> str:
    value = item.get(name)
    return value if isinstance(value, str) else ""


def _size(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
