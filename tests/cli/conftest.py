"""The command, called in the test's own process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import Called


@pytest.fixture
def called(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Called:
    """Call it from an empty folder, with nothing of the surroundings' settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CALLJOURNAL_DATABASE_URL", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    return Called(capsys)
