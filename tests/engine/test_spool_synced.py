"""What is yielded while the journal is away has been synced to disk before (DESIGN 6, Journal down; 8, 1)."""

from __future__ import annotations

import os
from contextlib import aclosing
from pathlib import Path

import pytest

from events import Executed, Proposed
from tests.engine.losing import LosableJournal, drained, on_losable, reader, spool_files, spooling
from tests.engine.staging import CONTEXT, call, proved, row_of

__all__ = ()

pytestmark = pytest.mark.anyio


async def test_what_is_yielded_in_an_outage_is_on_disk(
    losable: LosableJournal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: dict[int, int] = {}
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        fsync(descriptor)
        status = os.fstat(descriptor)
        synced[status.st_ino] = status.st_size

    async def runs() -> str:
        return "done"

    monkeypatch.setattr(os, "fsync", noted)
    settings = spooling(tmp_path)
    sizes: list[int] = []
    async with on_losable(losable, settings, reader(runs)) as engine:
        losable.go_away()
        async with aclosing(engine.execute(call(), CONTEXT)) as stream:
            assert isinstance(await anext(stream), Proposed)
            sizes.append(synced_size(spool_files(settings), synced))
            assert isinstance(await anext(stream), Executed)
            sizes.append(synced_size(spool_files(settings), synced))
        losable.come_back()
        await drained(engine)
        assert (await row_of(engine)).status == "executed"
        await proved(engine)
    assert 0 < sizes[0] < sizes[1]


def synced_size(files: list[Path], synced: dict[int, int]) -> int:
    """Return how much stands in the files, all of which must have been synced as it is."""
    found = [file.stat() for file in files]
    assert [synced.get(status.st_ino) for status in found] == [status.st_size for status in found]
    return sum(status.st_size for status in found)
