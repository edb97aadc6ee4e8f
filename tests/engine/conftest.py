"""Journals for the tests of the engine: one each, of either kind, ready in milliseconds."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio
import pytest

from engine import Engine

__all__ = ()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated file, made once: migrating a new one costs half a second of disk."""
    path = tmp_path_factory.mktemp("template") / "journal.db"

    async def make() -> None:
        async with Engine.open(f"sqlite:///{path}"):
            pass

    anyio.run(make)
    return path


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """A journal in a file of the test's own."""
    path = tmp_path / "journal.db"
    shutil.copyfile(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def journal_url(request: pytest.FixtureRequest) -> str:
    """A journal of the test's own: a file, or a database of a real server."""
    return str(request.getfixturevalue(f"{request.param}_url"))
