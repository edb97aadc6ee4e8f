"""Journals that can be taken away; and the fault matrix's table, at the end of the run that made it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.fault_matrix import Points, table_of
from tests.engine.losing import LosableJournal, losable_postgres, losable_sqlite

__all__ = ("MATRIX",)

MATRIX = pytest.StashKey[list[Points]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[MATRIX] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if rows := config.stash.get(MATRIX, []):
        terminalreporter.section("fault matrix")
        for line in table_of(rows):
            terminalreporter.line(line)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def losable(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LosableJournal]:
    """A journal that can be taken away."""
    if request.param == "postgres":
        with losable_postgres(str(request.getfixturevalue("postgres_url")), monkeypatch) as journal:
            yield journal
        return
    with losable_sqlite(f"sqlite:///{tmp_path}/journal.db") as journal:
        yield journal
