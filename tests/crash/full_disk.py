"""A process whose journal's disk is full for a while: ``python -m tests.crash.full_disk FOLDER BACKEND``.

SQLite's files and the spool's are held to a size by a limit of the process, which is lifted again. Exit code 0: every
promise held.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import anyio

from events import Executed, LogUnavailable
from tests.crash.outage_load import Load
from tests.engine.losing import spool_files, spooling
from tests.engine.staging import staged_engine

__all__ = ()


def _limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


async def main(folder: Path) -> None:
    load, settings = Load(4), spooling(folder)
    async with staged_engine(
        f"sqlite:///{folder}/journal.db", *load.tools, rows=load.rows, settings=settings
    ) as engine:
        journal = max(path.stat().st_size for path in folder.glob("journal.db*"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(load.run, engine)
            await anyio.sleep(0.5)
            # What the write-ahead log may still grow; the spool begins at nothing.
            _limit(journal + 400_000)
            with anyio.fail_after(30):
                while not load.refused:
                    await anyio.sleep(0.05)
            before = len(load.seen)
            await anyio.sleep(1.5)
            spooled = [event for event in load.seen[before:] if isinstance(event, Executed)]
            assert spooled, "reads go on"
            assert all(event.position is None for event in spooled)
            assert spool_files(settings)
            # Nothing may grow at all: then nothing begins, and what ends is not said to be kept.
            _limit(1)
            await anyio.sleep(0.5)
            full = len(load.seen)
            await anyio.sleep(0.5)
            assert len(load.seen) == full, "nothing can be kept anywhere, and something was yielded"
            _limit(resource.getrlimit(resource.RLIMIT_FSIZE)[1])
            await anyio.sleep(1)
            load.over = True
        assert load.seen[-1].position is not None
        await load.proved(engine)


if __name__ == "__main__":
    try:
        anyio.run(main, Path(sys.argv[1]), backend=sys.argv[2])
    except LogUnavailable as error:
        sys.exit(str(error))
