"""A trial: the tests that a mutant names, run on a copy of the sources to which its patch was applied."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Final, Literal

import msgspec

from tests.mutants.mutant import Mutant
from tests.mutants.reports import Report, read_reports
from tests.shape import LAYERS, ROOT

__all__ = ("Finding", "NoTrial", "Share", "copied", "patched", "shares", "trial", "unpatched")

_COPIED: Final = (*LAYERS, "tests", "examples", "pyproject.toml")
_TEST_LIMIT: Final = 60
_LIMIT: Final = 240
_FEW: Final = 3


class NoTrial(Exception):
    """A trial did not come about: the patch does not apply, or pytest could not run the tests."""


class Share(msgspec.Struct, frozen=True):
    """Tests that are run together, on sources as they are."""

    tests: tuple[str, ...]
    only: str = ""


class Finding(msgspec.Struct, frozen=True):
    """What one test said of a mutant.

    ``red``: every variant of it failed, by what it asserts. ``GREEN``: it did not notice. ``broken``: it failed for
    another reason, or did not run, which says nothing. ``why`` is one line.
    """

    test: str
    colour: Literal["red", "GREEN", "broken"]
    why: str
    seconds: float


def trial(mutant: Mutant) -> list[Finding]:
    """Return a finding per test that the mutant names.

    :raises NoTrial: if there is none to be had; the text says why in one line
    """
    with copied() as tree:
        patched(tree, mutant)
        reports = _run(tree, mutant.tests, mutant.only)
    return [_finding(test, [report for report in reports if _of(report) == test]) for test in mutant.tests]


def shares(mutants: Sequence[Mutant]) -> list[Share]:
    """Return all tests that these mutants name, with every variant that one of them needs, in shares of some size."""
    named: dict[str, set[str]] = {"": set()}
    for mutant in mutants:
        named.setdefault(mutant.only, set()).update(mutant.tests)
    # Starting anew for a few tests costs more than all of their variants.
    few = {only for only, tests in named.items() if len(tests) < _FEW}
    everywhere = sorted(set[str]().union(named[""], *[named[only] for only in few]))
    halves = [Share(tuple(half)) for half in (everywhere[::2], everywhere[1::2]) if half]
    rest = [
        Share(tuple(sorted(named[only].difference(everywhere))), only) for only in sorted(named.keys() - few - {""})
    ]
    return [*halves, *[share for share in rest if share.tests]]


def unpatched(share: Share) -> list[Report]:
    """Return what a share of the tests says of the sources as they are.

    :raises NoTrial: if they cannot be run
    """
    with copied() as tree:
        return _run(tree, share.tests, share.only)


@contextmanager
def copied() -> Iterator[Path]:
    """Make a copy of the sources and their tests, compiled files included, and remove it at the end."""
    with tempfile.TemporaryDirectory(prefix="calljournal-mutant-") as folder:
        for name in _COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, Path(folder, name))
            else:
                shutil.copy2(source, folder)
        yield Path(folder)


def patched(tree: Path, mutant: Mutant) -> None:
    """Apply a mutant's patch. :raises NoTrial: if it does not apply"""
    # Where the copy lies within some other repository, git must not take it for a part of that.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    command = ["git", "apply", "--whitespace=nowarn", str(mutant.path)]
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise NoTrial("git is not installed, which applies the patches") from error
    if done.returncode:
        said = done.stderr.strip().partition("\n")[0].removeprefix("error: ")
        raise NoTrial(f"{mutant.path.name} does not apply any more: {said}; make the same mistake anew")


def _run(tree: Path, tests: Sequence[str], only: str) -> list[Report]:
    told = tree / f"reports-{perf_counter()}"
    told.touch()
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider"]
    command += ["-p", "tests.mutants.reports", "--reports", str(told), f"--timeout={_TEST_LIMIT}", "-k", only, *tests]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    process = subprocess.Popen(
        command,
        cwd=tree,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=_LIMIT)
    except subprocess.TimeoutExpired as error:
        raise NoTrial(f"its tests did not end within {_LIMIT} s") from error
    finally:
        _end(process)
    if process.returncode not in (0, 1):
        last = [line for line in said.splitlines() if line.strip()][-1:]
        raise NoTrial(f"pytest could not run its tests: {''.join(last) or process.returncode}")
    return read_reports(told)


def _end(process: subprocess.Popen[str]) -> None:
    """End a run together with all that it has started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _of(report: Report) -> str:
    return report.node.partition("[")[0]


def _finding(test: str, reports: Sequence[Report]) -> Finding:
    seconds = sum(report.seconds for report in reports)
    if not reports:
        return Finding(test, "broken", "it did not run", seconds)
    for report in reports:
        variant = report.node.partition("[")[2].rstrip("]")
        if report.fate == "passed":
            return Finding(test, "GREEN", f"[{variant}] passed", seconds)
        if report.fate != "failed":
            return Finding(test, "broken", f"[{variant}] {report.why}", seconds)
    return Finding(test, "red", reports[0].why, seconds)
