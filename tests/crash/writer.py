"""A process that appends for as long as it is let, and says of each event that it is in the log.

``python -m tests.crash.writer URL BACKEND NAME CALLS``: the calls ``NAME`` 0, 1, ... are proposed and executed, many at
once; others may do the same under the same keys. Each acknowledged event is one line: its id.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

import anyio

from events import EventLog, Executed, LogUnavailable, Proposed, TransitionRejected, VersionConflict
from tests.events.appends import follow, proposed
from tests.logs import opened

__all__ = ("main",)

AT_ONCE = 16


def acknowledge(*ids: str) -> None:
    """Say it at once: what stays in a buffer was not said."""
    os.write(1, "".join(f"{name}\n" for name in ids).encode())


async def call(log: EventLog, first: Proposed) -> None:
    try:
        await log.append(first.key, [first], 0, "u")
        acknowledge(first.id)
        result = follow(Executed, first, result="x" * 200)
        await log.append(first.key, [result], 1, "u")
        acknowledge(result.id)
    except (VersionConflict, TransitionRejected):
        await take_part(log, first)


async def take_part(log: EventLog, first: Proposed) -> None:
    """Somebody else began this call: try to end it before they do."""
    result = follow(Executed, first, result="mine")
    with suppress(VersionConflict, TransitionRejected):
        await log.append(first.key, [result], 1, "u")
        acknowledge(result.id)


async def main(url: str, name: str, calls: int) -> None:
    async with opened(url) as log:
        acknowledge("ready")
        # A parent that waits for several of us lets them begin together.
        await anyio.to_thread.run_sync(sys.stdin.readline)
        numbers = iter(range(calls))

        async def caller() -> None:
            for number in numbers:
                await call(log, proposed(f"{name}{number}"))

        async with anyio.create_task_group() as tasks:
            for _ in range(AT_ONCE):
                tasks.start_soon(caller)


if __name__ == "__main__":
    try:
        anyio.run(main, sys.argv[1], sys.argv[3], int(sys.argv[4]), backend=sys.argv[2])
    except* LogUnavailable as failure:
        sys.exit(str(failure.exceptions))
