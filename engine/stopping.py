"""What stops a call that was allowed before: the gate, asked again when it is about to go on."""

from __future__ import annotations

from engine.admission import admit_again
from engine.deadlines import deadline_of
from engine.definition import Definition
from engine.gate import Allow, Deny, Pause
from engine.outcomes import denied, paused
from engine.runtime import Runtime
from engine.standing import Standing
from events.types import Denied, Paused

__all__ = ("stopped_now",)


async def stopped_now(runtime: Runtime, standing: Standing, definition: Definition | None) -> Paused | Denied | None:
    """Return the event of a call that something forbids by now, or that must be looked at again; None: it may go on.

    :param definition: its action; None: its client's
    """
    match await admit_again(runtime, standing.proposed, definition, standing.rules):
        case Allow():
            return None
        case Pause() as pause:
            return paused(standing.proposed, pause, deadline_of(pause, runtime.settings.limits))
        case Deny() as deny:
            return denied(standing.proposed, deny)
