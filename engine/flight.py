"""A call between its proposal and its end: what must be closed if its consumer goes away (DESIGN 6, Cancellation)."""

from __future__ import annotations

import logging

import anyio

from engine.outcomes import failed
from engine.runtime import Runtime
from events.errors import Conflict, LogUnavailable
from events.types import Proposed

__all__ = ("Flight",)

_log = logging.getLogger("calljournal.execution")
_MAY_HAVE_RUN = "The call was cancelled while it ran; it may have had its effect."
_NOT_RUN = "The call was cancelled before its tool ran."


class Flight:
    """Tracks one call that this engine proposed, or took over.

    :ivar settled: nothing more must be appended
    :ivar version: the version of its stream
    :ivar started: the tool has been called
    """

    def __init__(self, proposed: Proposed) -> None:
        self.proposed = proposed
        self.version = 1
        self.settled = False
        self.started = False

    def __repr__(self) -> str:
        return f"<Flight {self.proposed.key} v{self.version}{' settled' if self.settled else ''}>"

    async def abandon(self, runtime: Runtime) -> None:
        """Record that the call was cancelled, unless it is settled; whatever cancels the caller, this is tried.

        A call that is not in the log, or was closed by somebody else, stays as it is.
        """
        if self.settled:
            return
        self.settled = True
        message = _MAY_HAVE_RUN if self.started else _NOT_RUN
        event = failed(self.proposed, "cancelled", message)
        with anyio.CancelScope(shield=True):
            try:
                # The key may be another call's: then this one never came to be, and there is nothing to close.
                if not await runtime.journal.is_at(self.proposed, self.version):
                    return
                await runtime.journal.close(self.proposed, event, self.version)
            except Conflict:
                return
            except LogUnavailable as error:
                _log.warning("call %s was cancelled, and that could not be recorded: %s", self.proposed.key, error)
                return
        runtime.telemetry.transition(event)
