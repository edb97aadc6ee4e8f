"""A process that runs calls for ever and says each event it was given.

``python -m tests.crash.executor URL BACKEND NAME``. It writes ``ready`` and its worker's id, waits for a line, then
writes one line per event yielded: id, key, kind. What its tool does goes into the file named by the environment
variable ``EFFECTS``: one line per run.
"""

from __future__ import annotations

import os
import sys
from contextlib import aclosing
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread

from engine import CallContext, Engine, Tool, ToolCall, ToolRow

__all__ = ()

LOOPS = 16


class Bell(Tool):
    """Leaves a mark per run, durable before it returns."""

    name = "bell"

    def get_actions_metadata(self) -> list[dict[str, Any]]:
        schema = {"type": "object", "properties": {"mark": {"type": "string"}}, "required": ["mark"]}
        return [{"name": "ring", "parameters": schema}]

    def get_config_requirements(self) -> dict[str, Any]:
        return {}

    async def execute_action(self, action_name: str, /, **kwargs: Any) -> str:
        with open(os.environ["EFFECTS"], "ab", buffering=0) as file:
            file.write(f"{kwargs['mark']}\n".encode())
        await anyio.lowlevel.checkpoint()
        return f"rang {kwargs['mark']}"


async def loop(engine: Engine, name: str, number: int) -> None:
    turn = 0
    while True:
        turn += 1
        mark = f"{name}-{number}-{turn}"
        context = CallContext(user_id=f"u{number % 4}", message_id=mark)
        wanted = ToolCall(id="c", name="ring", arguments={"mark": mark})
        async with aclosing(engine.execute(wanted, context)) as stream:
            async for event in stream:
                say(f"{event.id} {event.key} {type(event).__name__}")


def say(line: str) -> None:
    # One write per line: a killed process leaves no half of one.
    os.write(1, f"{line}\n".encode())


async def main(url: str, name: str) -> None:
    async with Engine.open(url, rows=[ToolRow(id="t1", name="bell")], tools=[Bell]) as engine:
        say(f"ready {engine.statistics().worker}")
        await anyio.to_thread.run_sync(sys.stdin.readline)
        async with anyio.create_task_group() as tasks:
            for number in range(LOOPS):
                tasks.start_soon(loop, engine, name, number)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[3], backend=sys.argv[2])
