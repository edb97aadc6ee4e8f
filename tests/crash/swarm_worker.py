"""A worker of a swarm: makes the calls of the tickets that it takes, many at once, until there are no more.

``python -m tests.crash.swarm_worker URL BACKEND PIPE``, the pipe's end as a file descriptor.
"""

from __future__ import annotations

import sys
import time

import anyio

from engine import Engine
from events import Paused
from tests.crash.swarm import PlannedCall, Ticket, Tickets, planned, planned_turn
from tests.crash.swarm_process import Notes, joined

__all__ = ("main",)

LOOPS = 16
BEAT = 0.02
"""Seconds between two moments at which what is to begin together begins."""


async def make(engine: Engine, notes: Notes, wanted: PlannedCall) -> None:
    """Make one call; a client's is executed by its client now, in half of all cases."""
    events = await notes.follow(engine.execute(wanted.call, wanted.context))
    if wanted.kind == "client" and wanted.number % 2 and events and isinstance(events[-1], Paused):
        await notes.follow(engine.submit_result(events[-1].key, {"n": wanted.number}, wanted.context))


async def make_turn(engine: Engine, notes: Notes, number: int) -> None:
    """Make the calls of a turn together."""
    if wanted := planned_turn(number):
        async with engine.execute_all([each.call for each in wanted], wanted[0].context) as events:
            async for event in events:
                notes.note(event)


async def work(engine: Engine, notes: Notes, tickets: Tickets) -> None:
    while (ticket := await tickets.take()) is not None:
        await serve(engine, notes, ticket)


async def serve(engine: Engine, notes: Notes, ticket: Ticket) -> None:
    if ticket.together:
        await anyio.sleep(BEAT - time.time() % BEAT)
    if ticket.turn:
        await make_turn(engine, notes, ticket.number)
    else:
        await make(engine, notes, planned(ticket.number))


async def main(url: str, pipe: int) -> None:
    async with joined(url) as (engine, notes), anyio.create_task_group() as tasks:
        tickets = Tickets(pipe)
        for _ in range(LOOPS):
            tasks.start_soon(work, engine, notes, tickets)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], int(sys.argv[3]), backend=sys.argv[2])
