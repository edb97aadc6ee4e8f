"""The live event stream of ``calljournal run``."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

from engine.cli.output import Output
from engine.cli.plain import one_line
from engine.cli.rendering import event_line
from engine.cli.response import Turn
from events.transitions import kind_of
from events.types import Approved, Executed, Proposed, StreamEvent
from events.wire import to_wire

__all__ = ("EventStream",)


class EventStream:
    """Prints events as they happen and counts how calls ended.

    :param head: the log's end before the run: what stands up to there is recorded from an earlier one
    """

    def __init__(self, output: Output, head: int) -> None:
        self._output = output
        self._head = head
        self._ends: dict[str, StreamEvent] = {}

    async def begin(self, turn: Turn) -> None:
        """Say what is about to run."""
        if not self._output.as_json:
            calls = "1 call" if len(turn.calls) == 1 else f"{len(turn.calls)} calls"
            await self._say(f"{calls} of {turn.family} message {turn.message_id}")

    async def show(self, events: AsyncGenerator[StreamEvent, None]) -> StreamEvent | None:
        """Print one call's events, each as soon as it is durable, and return the last."""
        last = None
        async with aclosing(events):
            async for last in events:
                await self.tell(last)
        return last

    async def tell(self, event: StreamEvent | Approved) -> None:
        """Print an event of a call."""
        await self._output.live(partial(self._print, event))
        if not isinstance(event, Proposed | Approved):
            self._ends[event.key] = event

    def _print(self, event: StreamEvent | Approved) -> None:
        if self._output.as_json:
            again = {"replayed": True} if self._is_repeated(event) else {}
            self._output.record(to_wire(event) | again)
        else:
            console = self._output.console
            console.print(event_line(event, console.width, replayed=self._is_repeated(event)), soft_wrap=True)

    def _is_repeated(self, event: StreamEvent | Approved) -> bool:
        return event.position is not None and event.position <= self._head

    async def end(self, turn: Turn) -> bool:
        """Say how it went; return whether every call was executed and completed."""
        ends = Counter(map(_ending, self._ends.values()))
        if not self._output.as_json:
            counts = ", ".join(f"{count} {end}" for end, count in ends.items())
            repeated = sum(map(self._is_repeated, self._ends.values()))
            again = f" ({repeated} recorded before, not run again)" if repeated else ""
            await self._say(f"{counts}{again}")
        return set(ends) <= {"executed"} and ends.total() == len(turn.calls)

    async def _say(self, text: str) -> None:
        await self._output.live(lambda: self._output.console.print(one_line(text), style="dim"))


def _ending(event: StreamEvent) -> str:
    failed_in_band = isinstance(event, Executed) and event.status == "error"
    return "executed with an error" if failed_in_band else kind_of(event)
