"""A search by one service, and by another where that does not answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from engine.api.masking import Masker
from engine.contract import ToolResult
from engine.remote.exchange import Exchange
from engine.remote.service_error import ServiceError
from engine.search.query import SearchQuery
from engine.search.searches import searches
from engine.search.service import SearchService
from engine.search.tool_calls import failed, results_as_content
from engine.services import Services

__all__ = ("Attempt", "search_result", "with_duckduckgo")

_SHARE: Final = 0.6
"""Of the time there is, what a service may take that another comes after."""

_TIMES: Final = {"pd": "d", "pw": "w", "pm": "m", "py": "y"}


class Attempt(msgspec.Struct, frozen=True):
    """One service, and the query as it takes it.

    :ivar provider: what a result calls it
    """

    provider: str
    service: SearchService
    query: SearchQuery


async def search_result(
    services: Services, attempts: Sequence[Attempt], masker: Masker, seconds: float
) -> dict[str, Any] | ToolResult:
    """Return the first attempt's results, as a call's result; the next is made where another may do better."""
    errors: list[ServiceError] = []
    for place, attempt in enumerate(attempts, 1):
        share = seconds if place == len(attempts) else seconds * _SHARE
        exchange = Exchange(services, attempt.service.name, masker, share)
        try:
            found = await services.shared(searches).results(attempt.service, attempt.query, exchange)
        except ServiceError as error:
            errors.append(error)
            if not error.may_pass:
                break
            seconds -= share
        else:
            return results_as_content(attempt.provider, found)
    return failed(ServiceError(" ".join(map(str, errors)), errors[0].status))


def with_duckduckgo(first: Attempt, address: str, html_address: str, safesearch: str) -> list[Attempt]:
    """Return an attempt at Brave, and one at DuckDuckGo with what that knows of the parameters.

    Without the library that reads its pages, there is no second.
    """
    try:
        from engine.search.duckduckgo_search import MOST, DuckDuckGoSearch
    except ImportError:
        return [first]
    query = first.query
    since = _TIMES.get(dict(query.options).get("freshness", ""))
    options = (("timelimit", since),) if since and not (query.kind == "news" and since == "y") else ()
    taken = msgspec.structs.replace(query, options=options, count=min(query.count, MOST[query.kind]))
    service = DuckDuckGoSearch(address=address, html_address=html_address, safesearch=safesearch)
    return [first, Attempt("duckduckgo", service, taken)]
