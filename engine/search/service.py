"""A search service, as the tools see it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from engine.remote.exchange import Exchange
from engine.search.query import SearchQuery
from engine.search.result import SearchResult

__all__ = ("SearchService",)


class SearchService(Protocol):
    """Finds results, and says what it would send for that.

    ``name`` is what texts call it; ``place`` says where it searches and as whom: searches of one place share their
    pace and their breaker, and no two places share what is remembered; ``per_second`` is its pace.
    """

    @property
    def name(self) -> str:
        """What texts call it."""
        ...

    @property
    def place(self) -> Hashable:
        """Where it searches and as whom."""
        ...

    @property
    def per_second(self) -> int:
        """Requests that may go out in a second."""
        ...

    async def found(self, query: SearchQuery, exchange: Exchange) -> list[SearchResult]:
        """Search. :raises ServiceError: if it does not answer, or refuses"""
        ...

    def preview(self, query: SearchQuery) -> str:
        """Return what a search would send, secrets masked."""
        ...
