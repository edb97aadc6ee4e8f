"""What search tools share: one form of query, one form of result, a pace, a short memory."""

from __future__ import annotations

from engine.search.query import SearchQuery
from engine.search.result import SearchResult

__all__ = ("SearchQuery", "SearchResult")
