"""Journals that can be taken away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.losing import LosableJournal, losable_postgres, losable_sqlite

__all__ = ()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def losable(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LosableJournal]:
    """A journal that can be taken away."""
    if request.param == "postgres":
        with losable_postgres(str(request.getfixturevalue("postgres_url")), monkeypatch) as journal:
            yield journal
        return
    with losable_sqlite(f"sqlite:///{tmp_path}/journal.db") as journal:
        yield journal
