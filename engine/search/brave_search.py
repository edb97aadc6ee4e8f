"""Brave's search interface: what it is asked, and its results in the one form."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from engine.remote.exchange import Exchange
from engine.remote.request import MASK, RemoteRequest
from engine.search.query import SearchKind, SearchQuery
from engine.search.result import SearchResult, host_of

__all__ = ("LONGEST", "MOST", "WORDS", "BraveSearch")

LONGEST: Final = 400
"""Characters of a query."""

WORDS: Final = 50
"""Words of a query."""

MOST: Final[Mapping[SearchKind, int]] = MappingProxyType({"web": 20, "image": 100, "news": 50})
"""Results of one search."""

_PATHS: Final[dict[SearchKind, str]] = {"web": "web/search", "image": "images/search", "news": "news/search"}


class BraveSearch(msgspec.Struct, frozen=True, kw_only=True):
    """One row's access; its ``repr`` does not show the token.

    :ivar place: the row
    :ivar address: of the interface, without a slash at its end
    :ivar safesearch: off, moderate or strict; images know no moderate, so that is strict
    """

    place: Hashable
    token: str
    address: str
    safesearch: str
    per_second: int = 1

    name = "Brave"

    def __repr__(self) -> str:
        return f"<BraveSearch {self.address}>"

    async def found(self, query: SearchQuery, exchange: Exchange) -> list[SearchResult]:
        """Search; 429 and a server's failures are tried again within the call's time."""
        return list(_results(query.kind, await exchange.json(self._request(query, self.token), _reason)))

    def preview(self, query: SearchQuery) -> str:
        """Return the request, its token masked."""
        return self._request(query, MASK).preview()

    def _request(self, query: SearchQuery, token: str) -> RemoteRequest:
        most = MOST[query.kind]
        parameters = {
            "q": query.operators(LONGEST),
            "count": str(most if query.is_narrowed else query.count),
            "safesearch": "strict" if query.kind == "image" and self.safesearch != "off" else self.safesearch,
            **dict(query.options),
        }
        if query.kind != "image":
            parameters["offset"] = str(query.page)
        if query.kind == "web":
            parameters |= {"text_decorations": "false", "result_filter": "web"}
        url = f"{self.address}/{_PATHS[query.kind]}"
        return RemoteRequest.get(url, parameters, {"X-Subscription-Token": token})


def _reason(content: Any) -> Any:
    return (content["error"] if "error" in content else content["errors"][0])["detail"]


def _results(kind: SearchKind, content: Any) -> Iterator[SearchResult]:
    """Yield the results; where there are none, the reply has no part for them."""
    holder = content.get("web") if kind == "web" and isinstance(content, dict) else content
    found = holder.get("results") if isinstance(holder, dict) else None
    for item in found if isinstance(found, list) else ():
        if isinstance(item, dict) and isinstance(item.get("url"), str):
            yield _image(item) if kind == "image" else _page(item)


def _page(item: dict[str, Any]) -> SearchResult:
    publisher = item.get("profile")
    named = publisher.get("name") if isinstance(publisher, dict) else None
    return SearchResult(
        title=_text(item.get("title")),
        url=item["url"],
        snippet=_text(item.get("description")),
        published=_text(item.get("page_age")) or _text(item.get("age")) or None,
        source=_text(named) or host_of(item["url"]),
    )


def _image(item: dict[str, Any]) -> SearchResult:
    properties, thumbnail = (
        item[key] if isinstance(item.get(key), dict) else {} for key in ("properties", "thumbnail")
    )
    return SearchResult(
        title=_text(item.get("title")),
        url=item["url"],
        snippet="",
        published=None,
        source=_text(item.get("source")) or host_of(item["url"]),
        image=_text(properties.get("url")) or None,
        thumbnail=_text(thumbnail.get("src")) or None,
        width=_size(properties.get("width")),
        height=_size(properties.get("height")),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _size(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
