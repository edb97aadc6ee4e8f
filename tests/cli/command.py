"""The command as a program is started, and as a function is called."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.cli.main import main
from tests.shape import ROOT

__all__ = ("EXAMPLES", "Called", "Ended", "check_refused", "environment", "started")

EXAMPLES = ROOT / "examples"
TRACES = ("Traceback", "canary", 'File "')


class Ended(msgspec.Struct, frozen=True):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Standard output as NDJSON."""
        return [json.loads(line) for line in self.out.splitlines()]


class Called:
    """Calls the command as a function; quick."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *arguments: str | Path) -> Ended:
        self._capture.readouterr()
        code = main([str(argument) for argument in arguments])
        said = self._capture.readouterr()
        return Ended(code, said.out, said.err)


def environment(**more: str) -> dict[str, str]:
    """Return an environment in which the command is found, whatever is installed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CALLJOURNAL"))}
    return kept | {"PYTHONPATH": str(ROOT)} | more


def started(*arguments: str | Path, cwd: Path, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Ended:
    """Run the command as a program of its own, in a folder that has nothing of ours."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "engine.cli", *map(str, arguments)],
        cwd=cwd,
        env=environment() if env is None else dict(env),
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def check_refused(ended: Ended, code: int, *words: str) -> None:
    """Assert that the command ended so, with one clear line that has these words, and no trace of anything else."""
    assert (ended.code, ended.out) == (code, ""), ended
    assert ended.err.startswith("calljournal: ")
    assert ended.err.count("\n") == 1
    assert ended.err.endswith("\n")
    assert [word for word in words if word not in ended.err] == []
    assert [trace for trace in TRACES if trace in ended.err] == []
