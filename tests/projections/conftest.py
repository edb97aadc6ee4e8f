"""Projections are tested over real logs, on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from events import EventLog
from tests.logs import opened

__all__ = ()


@pytest.fixture
async def log(database_url: str) -> AsyncIterator[EventLog]:
    """An open log."""
    async with opened(database_url) as log:
        yield log
