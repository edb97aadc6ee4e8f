"""A reader of a swarm: follows the log while it grows, and writes down every event in the order in which it came.

``python -m tests.crash.swarm_follower URL BACKEND FILE``. It ends once it has come as far as the position that its
input says.
"""

from __future__ import annotations

import sys

import anyio
import anyio.to_thread

from tests.logs import opened

__all__ = ("main",)


async def follow(url: str, path: str, until: list[int]) -> None:
    async with opened(url) as log, log.subscribe(None) as events:
        seen = 0
        with open(path, "w", buffering=1) as file:
            while not until or seen < until[0]:
                # A quiet log says nothing, not even that it has ended.
                with anyio.move_on_after(0.5):
                    recorded = await anext(events)
                    seen = recorded.position
                    file.write(f"{recorded.position} {recorded.event.id}\n")


async def main(url: str, path: str) -> None:
    until: list[int] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow, url, path, until)
        until.append(int(await anyio.to_thread.run_sync(sys.stdin.readline)))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[3], backend=sys.argv[2])
