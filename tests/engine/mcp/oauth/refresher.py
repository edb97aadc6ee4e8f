"""A worker of its own: sends several requests at once with a stored token, when it is told so, and says how they ended.

``python -m tests.engine.mcp.oauth.refresher JOURNAL SERVER CALLS``
"""

from __future__ import annotations

import json
import sys

import anyio

from events.errors import JournalError
from tests.engine.mcp.oauth.consents import get, scope_of, serving

__all__ = ()


async def _work(journal: str, server: str, calls: int) -> None:
    ended: list[int | str] = []
    async with serving(journal) as services:
        scope = scope_of(services)

        async def call() -> None:
            try:
                ended.append((await get(server, scope)).status_code)
            except JournalError as error:
                ended.append(str(error))

        print("ready", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)
        async with anyio.create_task_group() as tasks:
            for _ in range(calls):
                tasks.start_soon(call)
    print(json.dumps(ended), flush=True)


if __name__ == "__main__":
    anyio.run(_work, sys.argv[1], sys.argv[2], int(sys.argv[3]))
