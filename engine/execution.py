"""``execute``: the ten steps from a call to its outcome, as an async stream of durable events (DESIGN 6, Executing)."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from engine.call import ToolCall
from engine.carrying import carry_out
from engine.context import CallContext
from engine.proposal import Origin
from engine.proposing import proposal_of
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
    caller = runtime.telemetry.caller()
    origin = Origin(runtime.worker, caller.traceparent)
    proposal = await proposal_of(runtime, call, context, prepared, origin)
    flight = runtime.flights.begin(proposal.proposed)
    broke: Broke | None = None
    trouble: Exception | None = None
    try:
        for event in await enter(runtime, flight, proposal, caller):
            yield event
        if not flight.settled:
            carried = await carry_out(runtime, flight, proposal, context, caller)
            broke = carried.broke
            yield carried.event
    except Exception as error:
        trouble = error
        raise
    finally:
        # Reached by leaving, closing and cancelling too; awaiting here is legal, yielding is not.
        if flight.settled:
            runtime.flights.end(flight)
        else:
            await runtime.flights.leave(flight, trouble)
    if reraise and broke is not None and broke.error is not None:
        raise broke.error
