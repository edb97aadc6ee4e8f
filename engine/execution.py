"""``execute``: the ten steps from a call to its outcome, as an async stream of durable events (DESIGN 6, Executing)."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from engine.call import ToolCall
from engine.conclusion import conclude
from engine.context import CallContext
from engine.flight import Flight
from engine.performance import perform
from engine.proposal import Origin, Proposal, propose
from engine.repetition import enter
from engine.running import Broke
from engine.runtime import Runtime
from engine.schemas import Prepared
from events.types import StreamEvent

__all__ = ("execute",)


async def execute(
    runtime: Runtime, call: ToolCall, context: CallContext, prepared: Prepared | None, reraise: bool
) -> AsyncGenerator[StreamEvent, None]:
    """Yield Proposed, then one of Paused, Denied, Executed, Failed; each is durable before it is seen.

    The same call again yields what is recorded of it, and runs nothing. Left, closed or cancelled at any point, the
    call does not stay in flight: its outcome, or Failed(cancelled), is recorded first.

    :raises LogUnavailable: if the proposal cannot be written: nothing was yielded, nothing ran
    :raises BaseException: what the tool raised, after its Failed, if ``reraise``
    """
    toolset = await runtime.toolsets.resolve(context)
    origin = Origin(runtime.worker, runtime.telemetry.traceparent())
    proposal = propose(call, context, toolset, prepared, origin, runtime.checker)
    flight = Flight(proposal.proposed)
    broke: Broke | None = None
    try:
        for event in await enter(runtime, flight, proposal):
            yield event
        if flight.settled:
            return
        outcome, broke = await _run(runtime, flight, proposal, context)
        yield outcome
    finally:
        # Reached by leaving, closing and cancelling too; awaiting here is legal, yielding is not.
        await flight.abandon(runtime)
    if reraise and broke is not None and broke.error is not None:
        raise broke.error


async def _run(
    runtime: Runtime, flight: Flight, proposal: Proposal, context: CallContext
) -> tuple[StreamEvent, Broke | None]:
    assert proposal.action is not None
    span = runtime.telemetry.start(flight.proposed, proposal.action.description)
    try:
        with span.current():
            performance = await perform(runtime, flight, proposal, context)
            event = await conclude(runtime, flight, performance)
        span.outcome(event)
    finally:
        span.end()
    return event, performance.run if isinstance(performance.run, Broke) else None
