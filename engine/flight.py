"""A call between its proposal and its end: what must be closed if its consumer goes away (DESIGN 6, Cancellation)."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from engine.endings import Endings
from engine.journal import Journal
from engine.last_appends import LastAppends
from engine.outcomes import failed
from engine.running import describe_exception
from engine.telemetry import CallSpan, Telemetry
from events.errors import Conflict, JournalError, LogUnavailable
from events.types import Failed, FailureKind, Proposed, Resumed

__all__ = ("Flight", "Flights")

_log = logging.getLogger("calljournal.execution")
_REMEMBERED: Final = 4096
"""Calls whose end is remembered by name."""

_MAY_HAVE_RUN = "it may have had its effect"
_NOT_RUN = "its tool was not run"


class Flight:
    """One call that this engine proposed, or claimed.

    :ivar proposed: its proposal, with the arguments that run
    :ivar settled: nothing more must be appended
    :ivar version: the version of its stream
    :ivar claim: the id of the Resumed by which it is this engine's; None: it is by its proposal
    :ivar request: what its tool asked for, and ``answer`` what came back
    :ivar rule: the operator's rule that allowed it
    :ivar started: the tool has been called
    :ivar spooled: its proposal is in the spool: so is everything that follows it
    :ivar unwritten: the log did not take its proposal, and nor has the spool yet
    :ivar span: its span, once it may run
    """

    # Of hardly any flight are these ever set.
    spooled = False
    unwritten = False

    def __init__(self, proposed: Proposed) -> None:
        self.restart(proposed)
        self.rule: str | None = None
        self.span: CallSpan | None = None

    def restart(self, proposed: Proposed) -> None:
        """Begin as this proposal: nothing of it is in the log yet."""
        self.proposed = proposed
        self.version = 1
        self.claim: str | None = None
        self.request: Any = None
        self.answer: Any | msgspec.UnsetType = msgspec.UNSET
        self.settled = False
        self.started = False

    def claimed(self, claim: Resumed, proposed: Proposed, version: int) -> None:
        """Note that the call is to be this engine's by this claim, which will be its stream's last event."""
        self.claim, self.proposed, self.version, self.settled = claim.id, proposed, version, False
        # What a dead worker began, or a tool that then asked for input, may have had its effect.
        self.started = claim.takeover or not isinstance(claim.answer, msgspec.UnsetType)

    def begin(self) -> None:
        """Note that the tool is called now."""
        self.started = True

    def __repr__(self) -> str:
        return f"<Flight {self.proposed.key} v{self.version}{' settled' if self.settled else ''}>"


class Flights:
    """The calls that are in flight in one engine."""

    def __init__(self, journal: Journal, endings: Endings, last_appends: LastAppends, telemetry: Telemetry) -> None:
        self._journal = journal
        self._endings = endings
        self._last_appends = last_appends
        self._telemetry = telemetry
        self._open: set[Flight] = set()
        self._ended: deque[tuple[str | None, str, str]] = deque(maxlen=_REMEMBERED)

    def __repr__(self) -> str:
        return f"<Flights {len(self._open)}>"

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, proposed: Proposed) -> Flight:
        """Return the flight of a call that is about to be proposed; end it with :meth:`leave` or :meth:`end`."""
        flight = Flight(proposed)
        self._open.add(flight)
        return flight

    def another(self, flight: Flight, key: str | None = None) -> Flight | None:
        """Return a flight that has not ended and that this engine has, besides this one, under a key: else its own."""
        return next((other for other in self._others(flight, key) if not other.unwritten), None)

    def runs_here(self, flight: Flight) -> bool:
        """Tell whether this engine has called the tool for another flight under the same key that has not ended."""
        return any(other.started for other in self._others(flight))

    def _others(self, flight: Flight, key: str | None = None) -> Iterator[Flight]:
        key, user_id = key or flight.proposed.key, flight.proposed.user_id
        for other in self._open:
            if other is not flight and other.proposed.key == key and other.proposed.user_id == user_id:
                yield other

    def ended(self, proposed: Proposed) -> bool:
        """Tell whether the same call ended in this engine not long ago: all there is to go by without a log."""
        return (proposed.user_id, proposed.key, proposed.digest) in self._ended

    def forget(self, flight: Flight) -> None:
        """Forget a flight whose call never came to be."""
        self._open.discard(flight)

    def end(self, flight: Flight) -> None:
        """Forget a flight that has ended, but for its name."""
        if flight in self._open:
            self._open.remove(flight)
            proposed = flight.proposed
            self._ended.append((proposed.user_id, proposed.key, proposed.digest))
        if flight.span is not None:
            flight.span.end()

    async def leave(self, flight: Flight, error: Exception | None = None) -> None:
        """See that a call whose consumer goes does not stay in flight: record that it was cancelled, or what broke.

        Whatever cancels the caller, this is tried. A call that is not in the log, or was closed by somebody else, stays
        as it is.
        """
        if flight.settled:
            self.end(flight)
            return
        flight.settled = True
        ran = _MAY_HAVE_RUN if flight.started else _NOT_RUN
        kind: FailureKind = "cancelled" if error is None else "exception"
        reason = "was cancelled" if error is None else f"broke off ({describe_exception(error)})"
        message = f"The call {reason}; {ran}."

        async def work() -> None:
            try:
                await self._close(flight, kind, message)
            finally:
                self.end(flight)

        try:
            await self._last_appends.see_to(work, f"call {flight.proposed.key} {reason}, which is to be recorded")
        except JournalError as failure:
            _log.warning("call %s %s, and that could not be recorded: %s", flight.proposed.key, reason, failure)

    async def _close(self, flight: Flight, kind: FailureKind, message: str) -> None:
        event = replace(failed(flight.proposed, kind, message), rule=flight.rule)
        if flight.spooled or self._endings.away:
            await self._spool(flight, event)
            return
        try:
            # The key may be another call's: then this one never came to be, and there is nothing to close.
            if await self._journal.version(flight.proposed, flight.claim) != flight.version:
                return
            closed = await self._journal.close(flight.proposed, event, flight.version)
        except Conflict:
            return
        except LogUnavailable as outage:
            await self._spool(flight, event, outage)
            return
        if flight.span is not None:
            flight.span.outcome(closed)
            self._telemetry.ran(closed, flight.span)

    async def _spool(self, flight: Flight, event: Failed, outage: LogUnavailable | None = None) -> None:
        version = 0 if flight.spooled else flight.version
        # Whether the claim is in the log is not known, and at its place another worker's may be by now.
        await self._endings.spool(flight.proposed, event, version, outage, told=False, claim=flight.claim)

    async def leave_all(self) -> None:
        """Close every call that is still in flight: its engine is being closed."""
        for flight in tuple(self._open):
            await self.leave(flight)
