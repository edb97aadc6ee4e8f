"""The fault matrix's table, at the end of the run that made it."""

from __future__ import annotations

import pytest

from tests.crash.fault_matrix import Points, table_of

__all__ = ("MATRIX",)

MATRIX = pytest.StashKey[list[Points]]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[MATRIX] = []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if rows := config.stash.get(MATRIX, []):
        terminalreporter.section("fault matrix")
        for line in table_of(rows):
            terminalreporter.line(line)
