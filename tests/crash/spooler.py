"""A process whose journal goes away: it runs calls for ever and says each event it was given.

``python -m tests.crash.spooler URL BACKEND SPOOL NAME``. It writes ``ready``, waits for a line, then writes one line
per event yielded: id, key, kind, position. What its tool does goes into the file named by the environment variable
``EFFECTS``: one line per run. With ``HANGS_AT`` set, it does not return where the mark ends so.
"""

from __future__ import annotations

import os
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
from sqlalchemy import Connection

from engine import CallContext, Engine, Settings, ToolCall, ToolRow
from tests.crash.executor import Bell

__all__ = ("LOOPS", "ReadBell", "row", "settings")

LOOPS = 4


class ReadBell(Bell):
    """A bell that may be rung while the journal is away."""

    name = "read_bell"
    effect = "read"

    async def execute_action(self, action_name: str, /, **kwargs: Any) -> str:
        rung = await super().execute_action(action_name, **kwargs)
        if str(kwargs["mark"]).endswith(os.environ.get("HANGS_AT", "never")):
            await anyio.sleep_forever()
        return rung


def row() -> ToolRow:
    """Return the bell's row."""
    return ToolRow(id="t1", name="read_bell")


def settings(folder: str | Path) -> Settings:
    """Return settings with a spool below a folder."""
    return Settings(spool=Path(folder))


async def _loop(engine: Engine, name: str, number: int) -> None:
    turn = 0
    while True:
        turn += 1
        mark = f"{name}-{number}-{turn}"
        # The turns of one loop share a message: their keys are told apart by the call alone.
        context = CallContext(user_id=f"u{number % 2}", message_id=f"{name}-{number}")
        wanted = ToolCall(id=f"c{turn}", name="ring", arguments={"mark": mark})
        async with aclosing(engine.execute(wanted, context)) as stream:
            async for event in stream:
                _say(f"{event.id} {event.key} {type(event).__name__} {event.position}")


def _say(line: str) -> None:
    # One write per line: a killed process leaves no half of one.
    os.write(1, f"{line}\n".encode())


def _impatient(connection: Connection) -> None:
    connection.exec_driver_sql("PRAGMA busy_timeout=10")


async def main(url: str, folder: str, name: str) -> None:
    async with Engine.open(url, rows=[row()], tools=[ReadBell], settings=settings(folder)) as engine:
        if engine.log.store.dialect == "sqlite":
            await engine.log.store.transact(_impatient)
        _say("ready")
        await anyio.to_thread.run_sync(sys.stdin.readline)
        async with anyio.create_task_group() as tasks:
            for number in range(LOOPS):
                tasks.start_soon(_loop, engine, name, number)


if __name__ == "__main__":
    _arguments: list[Any] = sys.argv[1:]
    anyio.run(main, _arguments[0], _arguments[2], _arguments[3], backend=_arguments[1])
