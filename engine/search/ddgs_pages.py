"""The ddgs library's knowledge of DuckDuckGo's pages, without its way of fetching them.

The library brings a client of its own, which knows neither our policy nor a deadline. Here its engines are made without
one: what to request and how to read the response is theirs, the request itself is whatever ``Fetch`` does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import msgspec
from ddgs.engines.duckduckgo import Duckduckgo
from ddgs.engines.duckduckgo_images import DuckduckgoImages
from ddgs.engines.duckduckgo_news import DuckduckgoNews
from ddgs.exceptions import DDGSException
from lxml.etree import LxmlError

from engine.search.query import SearchKind

__all__ = ("Fetch", "Page", "Unreadable", "Wanted", "results_content")


class Page(msgspec.Struct, frozen=True):
    """What came back; the names are those that the library asks for."""

    status_code: int
    text: str
    content: bytes


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A request that the library wants made.

    :ivar query: of the URL
    :ivar form: fields of the body; None: it has none
    """

    method: str
    url: str
    query: Mapping[str, str]
    form: Mapping[str, str] | None
    headers: Mapping[str, str]


Fetch = Callable[[Wanted], Page]

_NOT_OURS: Final = frozenset({"connection", "host", "user-agent"})
_SAFE: Final = {"off": "-2", "on": "1"}


class Unreadable(Exception):
    """The library cannot read what came back."""


class _Client:
    """Stands where the library has its HTTP client."""

    def __init__(self, fetch: Fetch, headers: Mapping[str, str]) -> None:
        self._fetch = fetch
        self._headers = {name: value for name, value in headers.items() if name.lower() not in _NOT_OURS}

    def request(
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> Page:
        texts = [None if each is None else {key: str(item) for key, item in each.items()} for each in (params, data)]
        return self._fetch(Wanted(method=method, url=url, query=texts[0] or {}, form=texts[1], headers=self._headers))


class _Record:
    """A result as the page has it: the library's own decodes addresses, which makes others of some."""


def _records(fields: Mapping[str, str], text: str) -> list[Any]:
    """Return the results of a JSON reply, with the names that the library gives their fields."""
    records = []
    for item in json.loads(text).get("results", []):
        record = _Record()
        vars(record).update({ours: item.get(theirs) for theirs, ours in fields.items()})
        records.append(record)
    return records


class _Text(Duckduckgo):
    def __init__(self, fetch: Fetch) -> None:
        self.http_client = cast("Any", _Client(fetch, self.headers_update))
        self.results = []

    @property
    def result_type(self) -> type[Any]:
        return _Record

    def build_payload(self, query: str, region: str, safesearch: str, *rest: Any, **more: Any) -> dict[str, Any]:
        # The library leaves it out: this page then searches moderately, whatever was asked for.
        chosen = {"kp": _SAFE[safesearch]} if safesearch in _SAFE else {}
        return {**super().build_payload(query, region, safesearch, *rest, **more), **chosen}


class _Images(DuckduckgoImages):
    def __init__(self, fetch: Fetch) -> None:
        self.http_client = cast("Any", _Client(fetch, self.headers_update))
        self.results = []

    def extract_results(self, html_text: str) -> list[Any]:
        return _records(self.elements_replace, html_text)


class _News(DuckduckgoNews):
    def __init__(self, fetch: Fetch) -> None:
        self.http_client = cast("Any", _Client(fetch, self.headers_update))
        self.results = []

    def extract_results(self, html_text: str) -> list[Any]:
        return _records(self.elements_replace, html_text)


_ENGINES: Final[dict[SearchKind, Callable[[Fetch], Any]]] = {"web": _Text, "image": _Images, "news": _News}


def results_content(
    kind: SearchKind, fetch: Fetch, *, text: str, region: str, safesearch: str, since: str | None, page: int
) -> list[dict[str, Any]]:
    """Search, and return the results as the library has them; it blocks as long as ``fetch`` does.

    :param safesearch: on, moderate or off
    :param since: d, w, m or y; None: any time
    :param page: counted from 1
    :raises Unreadable: if what came back cannot be read
    """
    try:
        found = _ENGINES[kind](fetch).search(text, region=region, safesearch=safesearch, timelimit=since, page=page)
    except (DDGSException, LxmlError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise Unreadable(type(error).__name__) from error
    return [dict(vars(each)) for each in found or ()]
