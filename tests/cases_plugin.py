"""Pytest plugin: a test that pins a case may not be skipped or excused; what would be a skip is a failure."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.cases_ledger import ids_in_name

__all__ = ("COLLECTED", "pytest_collection_modifyitems", "pytest_runtest_makereport")

COLLECTED = pytest.StashKey[frozenset[str]]()
"""The nodes that were collected, before any was deselected, without their parameters."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what was collected."""
    config.stash[COLLECTED] = frozenset(item.nodeid.partition("[")[0] for item in items)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn the skip or expected failure of a case's test into a failure that names the case."""
    report = yield
    name = item.originalname if isinstance(item, pytest.Function) else item.name
    excused = report.skipped or hasattr(report, "wasxfail")
    if excused and (ids := ids_in_name(name or item.name)):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} pins {', '.join(ids)} and may not be skipped: {_reason(report, call)}"
        if hasattr(report, "wasxfail"):
            del report.wasxfail
    return report


def _reason(report: pytest.TestReport, call: pytest.CallInfo[None]) -> str:
    excuse = getattr(report, "wasxfail", "")
    return (
        f"it is expected to fail ({excuse})"
        if hasattr(report, "wasxfail")
        else str(call.excinfo.value if call.excinfo else "")
    )
