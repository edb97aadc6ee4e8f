"""The events of a log, printed one after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgspec

from engine.cli.database import opened
from engine.cli.options import Choice
from engine.cli.output import Output
from engine.cli.rendering import event_line
from events.log import EventLog
from events.types import Recorded, ToolEvent
from events.wire import to_wire

__all__ = ("Feed", "Selection")


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which events, and how much of each.

    :ivar after: begin behind this position; None: behind the log's present end
    :ivar key: one call only
    :ivar every: all tenants' events, not only ``user``'s
    :ivar full: whole events, not the light copies
    """

    after: int | None
    follow: bool
    key: str | None
    user: str | None
    every: bool
    full: bool


class Feed:
    """Prints the events of a selection.

    :ivar position: how far it has come
    """

    def __init__(self, choice: Choice, wanted: Selection) -> None:
        self._choice = choice
        self._wanted = wanted
        self.position = wanted.after or 0

    async def print(self) -> None:
        """Print until the end of the log; following, until cancelled.

        :raises LogUnavailable: if the log cannot be read, or is damaged
        """
        output = Output(self._choice)
        show = partial(self._print, output)
        async with opened(self._choice.url) as log:
            if self._wanted.after is None:
                self.position = await log.head()
            async for recorded in self._events(log):
                if self._wanted.follow:
                    await output.live(partial(show, recorded))
                else:
                    show(recorded)
                self.position = recorded.position
        output.flush()

    async def _events(self, log: EventLog) -> AsyncIterator[Recorded[ToolEvent]]:
        wanted = self._wanted
        if wanted.key is not None:
            source = log.read_stream(wanted.key, user_id=wanted.user)
        elif wanted.follow:
            source = log.subscribe(None, self.position)
        elif wanted.every:
            source = log.read_all(self.position)
        else:
            source = log.read(self.position, user_id=wanted.user)
        async for recorded in source:
            if wanted.every or recorded.user_id == wanted.user:
                yield recorded

    def _print(self, output: Output, recorded: Recorded[ToolEvent]) -> None:
        if output.as_json:
            output.record(self._json(recorded))
        else:
            console = output.console
            console.print(event_line(recorded.event, console.width, recorded.recorded_at), soft_wrap=True)

    def _json(self, recorded: Recorded[ToolEvent]) -> dict[str, Any]:
        envelope = {"recorded_at": recorded.recorded_at, "version": recorded.version}
        event = recorded.event
        return (msgspec.to_builtins(event) if self._wanted.full else to_wire(event)) | envelope
