"""The page about the command line says what the command line does; help is quick."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli import failure
from engine.cli.main import calljournal
from tests.cli.command import Called, environment
from tests.pages import page, table

HEAVY = ("sqlalchemy", "alembic", "asyncpg", "fastmcp", "httpx", "rich", "trio", "opentelemetry.sdk")


def test_the_page_has_every_command() -> None:
    named = [row[0].split()[0] for row in table(page("docs/cli.md"), "Commands")]
    assert named[: len(calljournal.commands)] == list(calljournal.commands)


def test_the_page_has_every_exit_code() -> None:
    codes = {int(row[0]) for row in table(page("docs/cli.md"), "Exit codes")}
    ours = {failure.DONE, failure.NO, failure.BAD_INPUT, failure.UNAVAILABLE, failure.INTERRUPTED}
    assert codes == {*ours, failure.failure_of(BrokenPipeError()).code}


@pytest.mark.parametrize("name", calljournal.commands)
def test_every_command_explains_itself(called: Called, name: str) -> None:
    done = called(name, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Usage: calljournal {name} ")


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    script = "import sys; from engine.cli.main import main; main(['--help']); print(*sorted(sys.modules), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    loaded = set(done.stdout.splitlines())
    assert "click" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_no_command_shows_the_help_and_a_version_is_said(called: Called) -> None:
    done = called()
    assert (done.code, done.err) == (2, "")
    assert "doctor" in done.out
    assert called("--version").out.startswith("calljournal ")


def test_what_nobody_foresaw_is_one_line_too() -> None:
    found = failure.failure_of(ExceptionGroup("", [ZeroDivisionError("division by zero")]))
    assert found.code == 3
    assert "ZeroDivisionError: division by zero" in (found.line or "")
