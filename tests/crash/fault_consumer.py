"""The agent loop of the fault matrix: it notes durably whatever it is given before it goes on."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import anyio.lowlevel

from engine import CallContext, Engine, ToolCall
from events import ToolEvent
from events.types import StreamEvent
from tests.crash.fault_stage import CLIENT

__all__ = ("Consumer", "told_in")


class Consumer:
    """One turn's loop: its verbs, each of which notes what it was told.

    :ivar message: the turn
    :ivar told: the file of its notes
    """

    def __init__(self, engine: Engine, message: str, told: str, headless: bool = False) -> None:
        self.engine = engine
        self.message = message
        self.told = told
        self.context = CallContext(user_id="u", message_id=message, headless=headless, client_tools=(CLIENT,))
        self._file = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def key(self, call: ToolCall) -> str:
        """Return the key of a call of this turn."""
        return f"{self.message}:{call.id}"

    def note(self, *words: str) -> None:
        """Write a line about this turn, durable on return."""
        os.write(self._file, f"{' '.join((self.message, *words))}\n".encode())
        os.fsync(self._file)

    async def execute(self, call: ToolCall) -> StreamEvent:
        """Execute a call and return its last event."""
        return await self._listen(self.engine.execute(call, self.context))

    async def resume(self, call: ToolCall) -> StreamEvent:
        """Resume a call and return its event."""
        return await self._listen(self.engine.resume(self.key(call), self.context))

    async def submit(self, call: ToolCall, result: Any) -> StreamEvent:
        """Give a call what it waits for and return its event."""
        return await self._listen(self.engine.submit_result(self.key(call), result, self.context))

    async def decide(self, call: ToolCall, approve: bool, arguments: dict[str, Any] | None = None) -> None:
        """Decide on a call as a person would."""
        comment = None if approve else "not today"
        event = await self.engine.decide(
            self.key(call), approve=approve, by="alice", user_id="u", comment=comment, arguments=arguments
        )
        await self.take(event)

    async def confirm(self) -> None:
        """Say that the results are stored."""
        if await self.engine.confirm(self.message, user_id="u"):
            self.note("confirmed")

    async def take(self, event: ToolEvent) -> None:
        """Note an event, and let others have their turn as a loop that sends it somewhere would."""
        self.note("event", event.id, event.key)
        await anyio.lowlevel.checkpoint()

    async def _listen(self, stream: AsyncGenerator[StreamEvent, None]) -> StreamEvent:
        last: StreamEvent | None = None
        async with aclosing(stream) as events:
            async for event in events:
                await self.take(event)
                last = event
        assert last is not None
        return last


def told_in(text: str) -> tuple[set[str], set[str]]:
    """Return the ids of all events of which some consumer was told, and the turns of whose confirmation."""
    lines = [line.split(" ") for line in text.splitlines()]
    events = {words[2] for words in lines if words[1] == "event"}
    return events, {words[0] for words in lines if words[1] == "confirmed"}
