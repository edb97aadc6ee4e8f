"""Searches of an engine's tools: paced, remembered for a moment, and not repeated where a service is down."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Any, Final

import anyio
from cachetools import LRUCache, TTLCache

from engine.pacing.pace import Pace
from engine.pacing.rate import Rate, TooSoon
from engine.remote.exchange import Exchange
from engine.remote.service_error import ServiceError
from engine.search.query import SearchQuery
from engine.search.result import SearchResult, tidied
from engine.search.service import SearchService
from engine.services import Services

__all__ = ("REMEMBERED", "Searches", "searches")

REMEMBERED: Final = 60.0
"""Seconds for which a search's results are given out again."""

_SEARCHES: Final = 256
_PLACES: Final = 256
_FAILURES: Final = 5
_PAUSE: Final = 60


class Searches:
    """One per engine, in this process only.

    What is remembered is known by the place of the search (whose row, which service) and everything that is searched
    for. After five failures in a row that are not the query's fault, a place is left alone for a minute.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._remembered: TTLCache[Hashable, list[SearchResult]] = TTLCache(_SEARCHES, REMEMBERED, clock)
        self._breakers: LRUCache[Hashable, Any] = LRUCache(_PLACES)
        self._pace = Pace()

    async def results(self, service: SearchService, query: SearchQuery, exchange: Exchange) -> list[SearchResult]:
        """Return a query's results, tidied.

        :raises ServiceError: if the service does not answer or refuses, or is left alone for now
        """
        key = (service.place, query)
        if (known := self._remembered.get(key)) is not None:
            return known
        breaker = self._breaker(service)
        if breaker.opened:
            raise ServiceError(
                f"{service.name} has failed {_FAILURES} times in a row; it is asked again in "
                f"{max(1, round(breaker.open_remaining))} s."
            )
        await self._turn(service, exchange)
        try:
            found = tidied(await service.found(query, exchange), query)
        except ServiceError as error:
            _note(breaker, error)
            raise
        _note(breaker, None)
        self._remembered[key] = found
        return found

    async def _turn(self, service: SearchService, exchange: Exchange) -> None:
        rate = Rate(calls=service.per_second, seconds=1.0, burst=1)
        try:
            await self._pace.turn(service.place, rate, exchange.deadline - anyio.current_time())
        except TooSoon:
            raise ServiceError("Too many searches are waiting for their turn; try again in a moment.") from None

    def _breaker(self, service: SearchService) -> Any:
        from circuitbreaker import CircuitBreaker

        breaker = self._breakers.get(service.place)
        if breaker is None:
            breaker = self._breakers[service.place] = CircuitBreaker(
                failure_threshold=_FAILURES, recovery_timeout=_PAUSE, expected_exception=_counts, name=service.name
            )
        return breaker

    def __repr__(self) -> str:
        return f"<Searches: {len(self._remembered)} remembered>"


def _counts(_: type[BaseException], error: BaseException) -> bool:
    """Tell whether a failure says that the service is down or has had enough; a query that was wrong does not."""
    return isinstance(error, ServiceError) and error.may_pass


def _note(breaker: Any, error: ServiceError | None) -> None:
    """Tell a breaker of an outcome, at a place where no cancellation can be taken for one."""
    try:
        with breaker:
            if error is not None:
                raise error
    except ServiceError:
        return


def searches(_: Services) -> Searches:
    """Return the searches of an engine; ``services.shared(searches)`` are its one."""
    return Searches()
