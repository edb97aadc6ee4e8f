"""Event loops and databases for every test (STYLE, rule 16)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.postgres_server import PostgresServer, postgres_server

__all__ = ("TEMPLATE",)

TEMPLATE = "calljournal_template"


def pytest_configure() -> None:
    """Let processes that tests start be interrupted: started in a shell's background, a run ignores the signal."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module", params=[pytest.param("asyncio"), pytest.param("trio")])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Every async test runs under asyncio and under trio."""
    return request.param


@pytest.fixture(scope="session", autouse=True)
def _state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The run's own folder for state, where spools are: never the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One cluster for the run, fsync on, with a migrated template; started by the first test that needs it."""
    with postgres_server() as server:
        server.execute(f"CREATE DATABASE {TEMPLATE}")
        server.run(_migrate, server.url(TEMPLATE))
        yield server


async def _migrate(url: str) -> None:
    # Imported by the tests that need a database, so that the others start at once.
    from engine.migration import CHAINS
    from events.postgres import migrate_postgres

    await migrate_postgres(url, CHAINS)


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """A migrated database of the test's own."""
    url = postgres.create_database(TEMPLATE)
    yield url
    postgres.drop_database(url)


@pytest.fixture
def empty_postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """An empty database of the test's own."""
    url = postgres.create_database()
    yield url
    postgres.drop_database(url)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of the test's own, of either kind; SQLite's file is made when it is opened."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/journal.db"
    return str(request.getfixturevalue("postgres_url"))
