"""Pytest plugin: writes what became of each test into a file, for the trial of a mutant to read.

``-p tests.mutants.reports --reports FILE`` adds one line of JSON per test that ended: see :class:`Report`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
import pytest

from events.errors import JournalError

__all__ = ("Fate", "Report", "pytest_addoption", "pytest_runtest_makereport", "read_reports")

Fate: TypeAlias = Literal["passed", "failed", "broken", "skipped"]
"""``failed``: what the test asserts does not hold. ``broken``: it did not come to that."""

_Reports = pytest.StashKey[list["Report"]]
_STAGES = pytest.StashKey[dict[str, "Report"]]()


class Report(msgspec.Struct, frozen=True):
    """What became of one test, its parameters included; ``why`` is one line, empty if it passed."""

    node: str
    fate: Fate
    why: str
    seconds: float


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the file."""
    parser.addoption("--reports", type=Path, required=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Take note of a test's stage; the worst of its three stages is what became of it."""
    told = yield
    stages = item.stash.setdefault(_STAGES, {})
    fate, why = _fate(told, call)
    seconds = sum(stage.seconds for stage in stages.values()) + call.duration
    stages[call.when] = Report(item.nodeid, fate, why, seconds)
    if call.when == "teardown":
        worst = max(stages.values(), key=lambda stage: ("passed", "failed", "skipped", "broken").index(stage.fate))
        with Path(item.config.getoption("--reports")).open("ab") as file:
            file.write(msgspec.json.encode(msgspec.structs.replace(worst, seconds=seconds)) + b"\n")
    return told


def _fate(told: pytest.TestReport, call: pytest.CallInfo[None]) -> tuple[Fate, str]:
    if told.passed:
        return "passed", ""
    error = call.excinfo.value if call.excinfo is not None else None
    why = f"{type(error).__name__}: {error}".partition("\n")[0]
    if told.skipped:
        return "skipped", why
    # Before and after the test itself nothing is asserted.
    asserted = call.when == "call" and error is not None and all(map(_is_asserted, _leaves(error)))
    return "failed" if asserted else "broken", why


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error


def _is_asserted(error: BaseException) -> bool:
    """Tell whether an error says that a promise was not kept: an assertion's, or one that the journal itself raised.

    A mistake in the patch (a name, a type, an import) says nothing, nor does a test that only takes too long.
    """
    if isinstance(error, pytest.fail.Exception):
        return not str(error).startswith("Timeout")
    return isinstance(error, AssertionError | JournalError)


def read_reports(path: Path) -> list[Report]:
    """Return what a run has written."""
    return msgspec.json.decode(b"[" + b",".join(path.read_bytes().splitlines()) + b"]", type=list[Report])
