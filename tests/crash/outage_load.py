"""Load on one engine while its journal comes and goes, and what must hold of it afterwards."""

from __future__ import annotations

from collections import Counter
from contextlib import aclosing
from typing import Any

import anyio
from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from engine import CallContext, Engine, Tool, ToolCall, ToolRow
from events import LogUnavailable, ToolEvent
from events.types import StreamEvent
from projections import verify
from tests.engine.losing import drained
from tests.engine.staging import tool_of
from tests.logs import recorded_events

__all__ = ("Load",)

_MARKED = {"type": "object", "properties": {"mark": {"type": "string"}}, "required": ["mark"]}


class Load:
    """Loops that call a reading and a writing tool, and keep what they saw.

    :ivar seen: every event that was yielded
    :ivar refused: the marks of the calls that yielded nothing
    :ivar broken: the marks of those that broke off after their proposal
    :ivar effects: how often each mark was acted on
    """

    def __init__(self, loops: int) -> None:
        self.loops = loops
        self.seen: list[StreamEvent] = []
        self.refused: list[str] = []
        self.broken: list[str] = []
        self.effects: Counter[str] = Counter()
        self.over = False

    @property
    def rows(self) -> tuple[ToolRow, ...]:
        """A row for each of the tools, everybody's."""
        return tuple([ToolRow(id=tool.name, name=tool.name) for tool in self.tools])

    @property
    def tools(self) -> tuple[type[Tool], ...]:
        """The two tools."""
        reads = tool_of(self._act, name="reads", action="reads", parameters=_MARKED, effect="read")
        return reads, tool_of(self._act, name="writes", action="writes", parameters=_MARKED)

    async def _act(self, mark: str) -> dict[str, Any]:
        self.effects[mark] += 1
        await checkpoint()
        return {"needle": mark}

    async def run(self, engine: Engine) -> None:
        """Call until it is over."""
        async with anyio.create_task_group() as tasks:
            for number in range(self.loops):
                tasks.start_soon(self._loop, engine, number)

    async def _loop(self, engine: Engine, number: int) -> None:
        turn = 0
        while not self.over:
            turn += 1
            name = "writes" if turn % 3 == 0 else "reads"
            mark = f"{name}-{number}-{turn}"
            call = ToolCall(id=f"c{turn}", name=name, arguments={"mark": mark})
            context = CallContext(user_id=f"u{number % 3}", message_id=f"m{number}")
            await self._call(engine, call, context, mark)
            await checkpoint()

    async def _call(self, engine: Engine, call: ToolCall, context: CallContext, mark: str) -> None:
        count = 0
        try:
            async with aclosing(engine.execute(call, context)) as stream:
                async for event in stream:
                    count += 1
                    self.seen.append(event)
        except LogUnavailable:
            (self.broken if count else self.refused).append(mark)
            # As an agent's loop would: it does not hammer a journal that is away.
            await anyio.sleep(0.05)

    async def proved(self, engine: Engine) -> None:
        """Assert that everything yielded is in the log once, that nothing ran twice, and that the log is legal."""
        await drained(engine)
        records = await recorded_events(engine.log)
        found = {record.event.id: record.event for record in records}
        assert len(found) == len(records)
        for event in self.seen:
            there = found[event.id]
            assert event.position in (None, there.position)
            # Written after all, though its append was not answered, it is not late in the log.
            assert _told(event) == _told(there)
        assert set(self.effects.values()) <= {1}
        assert not set(self.refused) & set(self.effects)
        report = await verify(engine.log)
        assert report.ok, report.problems


def _told(event: StreamEvent | ToolEvent) -> StreamEvent | ToolEvent:
    return replace(event, position=None, late=False, key="")
