"""The README's example runs as it stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import code_blocks, page
from tests.shape import ROOT

EXAMPLES = code_blocks(page("README.md"), "python")


def test_the_first_two_commands_are_demo_and_test() -> None:
    commands = [line.strip() for line in page("README.md").splitlines() if line.startswith("    make ")]
    assert commands[:2] == ["make demo", "make test"]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_example_runs(number: int, backend: str, tmp_path: Path) -> None:
    example = EXAMPLES[number].replace("anyio.run(main)", f"anyio.run(main, backend={backend!r})")
    (tmp_path / "example.py").write_text(example)
    script = f"import sys, runpy; sys.path.insert(0, {str(ROOT)!r}); runpy.run_path('example.py')"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    assert run.stdout.splitlines()[0] == "m1:call_1 gave {'bay': 4, 'metres': 11.5}"
    assert run.stdout.splitlines()[1].startswith("m1:call_2 failed: ")
