"""A process in which somebody approves a call and has it run, at the same moment as somebody else elsewhere.

``python -m tests.crash.approver URL BACKEND NAME KEY [TIMES]``. It writes ``ready``, waits for a line, decides (so many
times at once) and resumes, and writes what came of each: the kind of event, or the error. Its tool leaves a mark in the
file named by ``EFFECTS``.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import anyio
import anyio.to_thread

from engine import CallContext, Engine, ToolRow
from events import Refused
from tests.crash.executor import Bell, say

__all__ = ("GatedBell",)

CONTEXT = CallContext(user_id="u", message_id="m")


class GatedBell(Bell):
    """Rings once somebody approves."""

    name = "gated_bell"

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        return [{**entry, "require_approval": True} for entry in super().get_actions_metadata()]


async def tried(work: Callable[[], Awaitable[object]]) -> None:
    try:
        say(f"{type(await work()).__name__}")
    except Refused as error:
        say(f"Refused {error}")


async def main(url: str, name: str, key: str, times: int) -> None:
    async def decided() -> object:
        return await engine.decide(key, approve=True, by=name, user_id="u")

    async def ran() -> object:
        async with aclosing(engine.resume(key, CONTEXT)) as stream:
            return [event async for event in stream][-1]

    async with Engine.open(url, rows=[ToolRow(id="t1", name="gated_bell")], tools=[GatedBell]) as engine:
        say("ready")
        await anyio.to_thread.run_sync(sys.stdin.readline)
        async with anyio.create_task_group() as tasks:
            for _ in range(times):
                tasks.start_soon(tried, decided)
        await tried(ran)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[3], sys.argv[4], int((sys.argv[5:] or ["1"])[0]), backend=sys.argv[2])
