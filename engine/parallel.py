"""``execute_all``: the calls of one turn side by side, their events as they happen (DESIGN 9)."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Sequence
from types import TracebackType

import anyio
import anyio.abc
import anyio.lowlevel

from engine.call import ToolCall
from engine.carrying import carry_out
from engine.context import CallContext
from engine.flight import Flight
from engine.lineup import Lineup, ReadyCall
from engine.proposal import Origin, Proposal
from engine.proposing import proposal_of
from engine.repetition import enter
from engine.runtime import Runtime
from engine.schemas import Prepared
from events.persistence import run_to_end
from events.types import StreamEvent

__all__ = ("EventsInTurn", "ParallelCalls")


class EventsInTurn(AsyncIterator[StreamEvent]):
    """The events of parallel calls, as they happen; ends when every call has come to its end, or waits.

    An error that is no call's own (the log cannot be written) is raised at the end, when all others have had their say.
    """

    def __init__(self) -> None:
        self._ready: deque[StreamEvent] = deque()
        self._errors: deque[Exception] = deque()
        self._changed = anyio.Event()
        self._open = True

    def __repr__(self) -> str:
        return f"<EventsInTurn {len(self._ready)} ready{'' if self._open else ', no more to come'}>"

    def put(self, event: StreamEvent) -> None:
        """Add an event."""
        self._ready.append(event)
        self._changed.set()

    def fail(self, error: Exception) -> None:
        """Add an error, to be raised when there are no more events."""
        self._errors.append(error)

    def end(self) -> None:
        """Say that no more is to come."""
        self._open = False
        self._changed.set()

    async def __anext__(self) -> StreamEvent:
        await anyio.lowlevel.checkpoint()
        while not self._ready:
            if not self._open:
                if self._errors:
                    raise self._errors.popleft()
                raise StopAsyncIteration
            if self._changed.is_set():
                self._changed = anyio.Event()
            await self._changed.wait()
        return self._ready.popleft()


class ParallelCalls:
    """Proposes a turn's calls on entering, runs them side by side, and closes whatever still runs on leaving.

    Every Proposed is appended, in list order, before any tool runs. At most ``Limits.parallel`` run at once; those of
    one row of a ``serial`` tool one after another. A call that waits or was refused holds up no other. Left early, by
    an exception or a cancellation, no call stays in flight: its outcome, or Failed(cancelled), is recorded first.
    """

    def __init__(
        self, runtime: Runtime, calls: Sequence[ToolCall], context: CallContext, prepared: Prepared | None
    ) -> None:
        self._runtime = runtime
        self._calls = tuple(calls)
        self._context = context
        self._prepared = prepared
        self._caller = runtime.telemetry.caller()
        self._events = EventsInTurn()
        self._flights: list[Flight] = []
        self._tasks: anyio.abc.TaskGroup | None = None
        self._workers = 0

    async def __aenter__(self) -> EventsInTurn:
        """Propose the calls and start them.

        :raises LogUnavailable: if a proposal cannot be written; then none of the calls ran
        """
        try:
            lineup = Lineup(await self._propose())
        except BaseException:
            await run_to_end(self._leave_all)
            raise
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        # As many as can run at once; a call behind another of its row is started by whoever ran that.
        self._workers = min(len(lineup), max(1, self._runtime.settings.limits.parallel))
        for _ in range(self._workers):
            self._tasks.start_soon(self._work, lineup)
        if not self._workers:
            self._events.end()
        return self._events

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel whatever still runs, and see every call closed."""
        assert self._tasks is not None
        self._tasks.cancel_scope.cancel()
        try:
            # Without what ended the body: the group would wrap it.
            await self._tasks.__aexit__(None, None, None)
        finally:
            await run_to_end(self._leave_all)

    async def _propose(self) -> list[ReadyCall]:
        """Append every proposal, in order; return those calls whose tool is to run."""
        runtime, ready = self._runtime, list[ReadyCall]()
        origin = Origin(runtime.worker, self._caller.traceparent)
        for place, call in enumerate(self._calls):
            proposal = await proposal_of(runtime, call, self._context, self._prepared, origin)
            flight = runtime.flights.begin(proposal.proposed)
            self._flights.append(flight)
            for event in await enter(runtime, flight, proposal, self._caller):
                self._events.put(event)
            if flight.settled:
                runtime.flights.end(flight)
            else:
                ready.append(ReadyCall(place, flight, proposal))
        return ready

    async def _work(self, lineup: Lineup) -> None:
        try:
            while (call := lineup.take()) is not None:
                await self._carry(call.flight, call.proposal)
                lineup.give_back(call)
        finally:
            self._workers -= 1
            if not self._workers:
                self._events.end()

    async def _carry(self, flight: Flight, proposal: Proposal) -> None:
        trouble: Exception | None = None
        try:
            carried = await carry_out(self._runtime, flight, proposal, self._context, self._caller)
            self._events.put(carried.event)
        except Exception as error:
            # Not swallowed: the iterator raises it when the other calls have had their say.
            trouble = error
            self._events.fail(error)
        finally:
            await _leave(self._runtime, flight, trouble)

    async def _leave_all(self) -> None:
        for flight in self._flights:
            await _leave(self._runtime, flight)


async def _leave(runtime: Runtime, flight: Flight, trouble: Exception | None = None) -> None:
    if flight.settled:
        runtime.flights.end(flight)
    else:
        await runtime.flights.leave(flight, trouble)
