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
from events.types import Executed, Proposed, StreamEvent
from events.wire import to_wire

__all__ = ("EventStream",)


class EventStream:
    """Prints events as they happen and counts how calls ended.

    :param head: the log's end before the run: what stands up to there is recorded from an earlier one
    """

    def __init__(self, output: Output, head: int) -> None:
        self._output = output
        self._head = head
        self._ends: Counter[str] = Counter()
        self._repeated = 0

    async def begin(self, turn: Turn) -> None:
        """Say what is about to run."""
        if not self._output.as_json:
            calls = "1 call" if len(turn.calls) == 1 else f"{len(turn.calls)} calls"
            await self._say(f"{calls} of {turn.family} message {turn.message_id}")

    async def show(self, events: AsyncGenerator[StreamEvent, None]) -> None:
        """Print one call's events, each as soon as it is durable."""
        async with aclosing(events):
            async for event in events:
                await self._output.live(partial(self._print, event))
                self._count(event)

    def _print(self, event: StreamEvent) -> None:
        if self._output.as_json:
            again = {"replayed": True} if self._is_repeated(event) else {}
            self._output.record(to_wire(event) | again)
        else:
            console = self._output.console
            console.print(event_line(event, console.width, replayed=self._is_repeated(event)), soft_wrap=True)

    def _is_repeated(self, event: StreamEvent) -> bool:
        return event.position is not None and event.position <= self._head

    def _count(self, event: StreamEvent) -> None:
        if isinstance(event, Proposed):
            return
        failed_in_band = isinstance(event, Executed) and event.status == "error"
        self._ends["executed with an error" if failed_in_band else kind_of(event)] += 1
        self._repeated += self._is_repeated(event)

    async def end(self, turn: Turn) -> bool:
        """Say how it went; return whether every call was executed and completed."""
        if not self._output.as_json:
            ends = ", ".join(f"{count} {end}" for end, count in self._ends.items())
            again = f" ({self._repeated} recorded before, not run again)" if self._repeated else ""
            await self._say(f"{ends}{again}")
        return set(self._ends) <= {"executed"} and self._ends.total() == len(turn.calls)

    async def _say(self, text: str) -> None:
        await self._output.live(lambda: self._output.console.print(one_line(text), style="dim"))
