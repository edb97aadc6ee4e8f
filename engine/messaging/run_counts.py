"""How many messages a run has sent: a loop, or a page that talks a model into it, must not flood a person."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Final

from cachetools import TTLCache

from engine.contract import Scope, ToolContext
from engine.services import Services
from events.errors import Refused

__all__ = ("RunCounts", "run_counts", "run_of")

_RUNS: Final = 10_000
_KEPT: Final = 24 * 3600.0


class RunCounts:
    """Counts in this process, for a day; a restart begins anew."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._counts: TTLCache[Hashable, int] = TTLCache(_RUNS, _KEPT, clock)

    def take(self, run: Hashable, messages: int, most: int) -> None:
        """Count messages before they are sent.

        :raises Refused: if the run would have sent more than it may; nothing is counted then
        """
        sent = self._counts.get(run, 0)
        if sent + messages > most:
            raise Refused(
                f"Message not sent: this run has sent {sent} of at most {most} messages, and this would be {messages} "
                "more. Say what is left to the user directly; a row's owner sets the limit (max_per_run)."
            )
        self._counts[run] = sent + messages

    def give_back(self, run: Hashable, messages: int) -> None:
        """Uncount messages that were not sent."""
        self._counts[run] = max(0, self._counts.get(run, 0) - messages)


def run_counts(_: Services) -> RunCounts:
    """Return the counts of an engine; ``services.shared(run_counts)`` are its one."""
    return RunCounts()


def run_of(scope: Scope, context: ToolContext) -> Hashable:
    """Return what counts as one run: a run that nobody watches, else the turn, of one user on one row."""
    return scope.owner, scope.tool_id, context.user_id, context.run_id or context.message_id or context.call_id
