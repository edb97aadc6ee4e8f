"""The log's contract holds on every event loop and every store."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from events import EventLog
from tests.logs import opened

__all__ = ()


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("asyncio", id="asyncio"),
        pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop"),
        pytest.param("trio", id="trio"),
    ],
)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Every test runs under asyncio, asyncio with uvloop, and trio."""
    return request.param


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty journal, to be copied: migrating takes longer than most tests."""
    path = tmp_path_factory.mktemp("template") / "journal.db"

    async def make() -> None:
        async with opened(f"sqlite:///{path}"):
            """Opening it makes its tables."""

    anyio.run(make)
    return path


@pytest.fixture(params=["sqlite", "memory", pytest.param("postgres", marks=pytest.mark.postgres)])
def log_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of the test's own: a file, one in memory, one of a real server."""
    if request.param == "memory":
        return "sqlite://"
    if request.param == "sqlite":
        shutil.copy(request.getfixturevalue("migrated_file"), tmp_path / "journal.db")
        return f"sqlite:///{tmp_path}/journal.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
async def log(log_url: str) -> AsyncIterator[EventLog]:
    """An open log on it."""
    async with opened(log_url) as log:
        yield log
