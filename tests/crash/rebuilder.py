"""A process that rebuilds the state table and stops after its first page, to be killed there.

``python -m tests.crash.rebuilder URL BACKEND``.
"""

from __future__ import annotations

import os
import sys

import anyio

from projections import rebuild
from tests.logs import opened

__all__ = ("main",)


def stand_still(done: int, total: int) -> None:
    os.write(1, f"{done} {total}\n".encode())
    sys.stdin.readline()


async def main(url: str) -> None:
    async with opened(url) as log:
        await rebuild(log, progress=stand_still)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], backend=sys.argv[2])
