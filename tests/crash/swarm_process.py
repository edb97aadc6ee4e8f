"""What every process of a swarm does: it opens the journal under a name, and notes every event that it is given."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path

import msgspec

from engine import Engine
from events import Conflict, Refused
from events.keys import tenant_column
from events.types import StreamEvent, ToolEvent
from tests.crash.swarm import settings_in
from tests.crash.swarm_tools import ROWS, TOOLS, add_line

__all__ = ("Member", "Notes", "Said", "joined", "members_in", "said_in")


class Member(msgspec.Struct, frozen=True):
    """A process of a swarm, and the id of its engine."""

    process: str
    worker: str


class Said(msgspec.Struct, frozen=True):
    """What a process was given: an event by its id, kind and position, and for which call: its key after its tenant."""

    id: str
    kind: str
    key: str
    position: int | None
    process: str


class Notes:
    """The file in which one process notes what it was given."""

    def __init__(self, folder: Path, process: str) -> None:
        self._path = folder / f"{process}.said"
        self._process = process

    def note(self, event: ToolEvent) -> None:
        """Note an event, at once: what is noted later than it was given might be forgotten."""
        key = f"{tenant_column(event.user_id)} {event.key}"
        add_line(self._path, Said(event.id, type(event).__name__, key, event.position, self._process))

    async def follow(self, stream: AsyncGenerator[StreamEvent, None]) -> list[StreamEvent]:
        """Note everything that a stream yields; empty where somebody else was faster."""
        events: list[StreamEvent] = []
        async with aclosing(stream):
            with suppress(Refused, Conflict):
                async for event in stream:
                    self.note(event)
                    events.append(event)
        return events


@asynccontextmanager
async def joined(url: str) -> AsyncIterator[tuple[Engine, Notes]]:
    """Open an engine for this process, and say whose it is."""
    folder, process = Path(os.environ["SWARM_FOLDER"]), os.environ["SWARM_NAME"]
    async with Engine.open(url, rows=ROWS, tools=TOOLS, settings=settings_in(folder)) as engine:
        add_line(folder / "members", Member(process, engine.statistics().worker))
        yield engine, Notes(folder, process)


def members_in(folder: Path) -> Iterator[Member]:
    """Yield every process that came to open its engine."""
    path = folder / "members"
    for line in path.read_bytes().splitlines() if path.exists() else ():
        yield msgspec.json.decode(line, type=Member)


def said_in(folder: Path) -> Iterator[Said]:
    """Yield everything that any process was given."""
    for path in sorted(folder.glob("*.said")):
        for line in path.read_bytes().splitlines():
            yield msgspec.json.decode(line, type=Said)
