"""Journals for the tests of the engine: one each, of either kind, ready in milliseconds."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


@pytest.fixture(scope="session")
def only_station() -> Any:
    """The process's one tracer and one meter: OpenTelemetry takes no second."""
    # Loaded by the tests that look at spans, so that the others start at once.
    from tests.engine.station import Station

    return Station()


@pytest.fixture
def station(only_station: Any, caplog: pytest.LogCaptureFixture) -> Iterator[Any]:
    """A ``Station`` without spans; at the end, OpenTelemetry has had nothing to complain about."""
    caplog.set_level(logging.DEBUG, logger="opentelemetry")
    only_station.exporter.clear()
    yield only_station
    assert [record for record in caplog.records if record.name.startswith("opentelemetry")] == []


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def losable(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A ``LosableJournal`` of the test's own: it can be taken away, and comes back."""
    from tests.engine.losing import losable_postgres, losable_sqlite

    url = str(request.getfixturevalue(f"{request.param}_url"))
    losing = losable_sqlite(url) if request.param == "sqlite" else losable_postgres(url, monkeypatch)
    with losing as journal:
        yield journal
