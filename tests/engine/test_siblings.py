"""``engine`` works with the packages that stand beside it, whatever else has their names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shape import ROOT


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A folder with a package ``events`` of somebody else's."""
    package = tmp_path / "site" / "events"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from .events import Events\n")
    (package / "events.py").write_text("class Events: pass\n")
    return package


def python(script: str, foreign: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", script],
        env=dict(os.environ) | {"PYTHONPATH": f"{foreign.parent}:{ROOT}"},
        cwd=foreign.parent,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_ours_are_used_although_another_is_found_first(foreign: Path) -> None:
    done = python("import engine, events, projections; print(events.Recorded.__module__)", foreign)
    assert (done.returncode, done.stdout, done.stderr) == (0, "events.types\n", "")


def test_a_package_in_use_is_not_taken_away(foreign: Path) -> None:
    done = python("import events; import engine", foreign)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ImportError: the package 'events' in use is ")
    assert "uninstall" in done.stderr.splitlines()[-1]
