"""The command, called in the test's own process."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import Called


@pytest.fixture
def called(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Called]:
    """Call it from an empty folder, with nothing of the surroundings' settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CALLJOURNAL_DATABASE_URL", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    logger = logging.getLogger("calljournal")
    level = logger.level
    yield Called(capsys)
    # The command sets the level for its process, which here is everybody's.
    logger.setLevel(level)
