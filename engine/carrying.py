"""From a durable proposal to its outcome: the gate's last word, the tool, the append (steps 6 to 10)."""

from __future__ import annotations

import msgspec

from engine.admission import admit
from engine.conclusion import conclude
from engine.context import CallContext
from engine.flight import Flight
from engine.performance import perform
from engine.proposal import Proposal, Refusal
from engine.redefining import may_change, redefined
from engine.running import Broke
from engine.runtime import Runtime
from engine.telemetry import Caller
from events.errors import JournalError
from events.types import StreamEvent

__all__ = ("Carried", "carry_out", "run_tool")


class Carried(msgspec.Struct, frozen=True):
    """What became of a call: its event as recorded, and how its tool broke, if it did."""

    event: StreamEvent
    broke: Broke | None = None


async def carry_out(
    runtime: Runtime, flight: Flight, proposal: Proposal, context: CallContext, caller: Caller
) -> Carried:
    """Run a proposed call unless the gate stops it now; the event is durable, and the flight settled, on return.

    :raises LogUnavailable: if the event cannot be written
    """
    if not flight.spooled and may_change(runtime, proposal):
        proposal = await redefined(runtime, flight, proposal, context)
    # Of what was claimed, or spooled, the gate has been asked before.
    asked = flight.claim is not None or flight.spooled
    stopped = None
    if not asked or isinstance(proposal.verdict, Refusal):
        stopped = await admit(runtime, flight, proposal, caller)
    return Carried(stopped) if stopped is not None else await run_tool(runtime, flight, proposal, context, caller)


async def run_tool(
    runtime: Runtime, flight: Flight, proposal: Proposal, context: CallContext, caller: Caller
) -> Carried:
    """Run a call that may run, and append its outcome.

    :raises LogUnavailable: if the outcome cannot be written
    """
    assert proposal.action is not None
    resumed = flight.claim is not None
    span = flight.span = runtime.telemetry.start(flight.proposed, caller, proposal.action.description, resumed)
    with span.current():
        performance = await perform(runtime, flight, proposal, context)
        try:
            event = await conclude(runtime, flight, performance)
        except JournalError as error:
            span.failed(type(error).__name__)
            raise
    span.end()
    return Carried(event, performance.run if isinstance(performance.run, Broke) else None)
