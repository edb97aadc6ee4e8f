"""Pytest plugin: the fault matrix's table, at the end of the run that made it, whichever processes ran its tests."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

__all__ = ("MATRIX", "pytest_configure", "pytest_sessionfinish", "pytest_terminal_summary", "pytest_testnodedown")

MATRIX = pytest.StashKey[list[Any]]()

# What the rows are made of is imported where there are any: a plugin is loaded before everything else.
_SENT = "fault_matrix"


def pytest_configure(config: pytest.Config) -> None:
    """Begin without points."""
    config.stash[MATRIX] = []


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send a worker's points to who started it."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_SENT] = msgspec.to_builtins(session.config.stash[MATRIX])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take a worker's points; one that was killed has none to give."""
    sent = getattr(node, "workeroutput", {}).get(_SENT)
    if not sent:
        return
    from tests.crash.fault_matrix import Points

    node.config.stash[MATRIX].extend(msgspec.convert(sent, list[Points]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table, if there is anything in it."""
    if rows := config.stash.get(MATRIX, []):
        from tests.crash.fault_matrix import table_of

        terminalreporter.section("fault matrix")
        for line in table_of(rows):
            terminalreporter.line(line)
