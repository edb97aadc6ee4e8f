"""What ``run --approve`` does with a call that waits for approval."""

from __future__ import annotations

from engine.cli.output import note
from engine.cli.prompting import Approve, Later, Reject, ask
from engine.cli.stream import EventStream
from engine.cli.terminal import Approval
from engine.cli.working import person
from engine.context import CallContext
from engine.engine import Engine
from events.errors import Refused
from events.types import Approved, Paused, StreamEvent

__all__ = ("Approver",)


class Approver:
    """Decides on calls that wait, and runs those that were approved.

    :param how: ask on the terminal; never: they stay waiting; always: approve each
    """

    def __init__(self, engine: Engine, stream: EventStream, context: CallContext, how: Approval) -> None:
        self._engine = engine
        self._stream = stream
        self._context = context
        self._how = how

    async def settle(self, ended: StreamEvent | None) -> None:
        """Go on with a call as long as it waits for approval.

        :param ended: the last event of the call
        """
        while self._how != "never" and isinstance(ended, Paused) and ended.pause_type == "awaiting_approval":
            row = await self._engine.attempt(ended.key, user_id=self._context.user_id)
            phase = None if row is None else row.attempt.phase
            if phase not in ("paused:awaiting_approval", "approved"):
                return
            try:
                ended = await (self._resumed(ended.key) if phase == "approved" else self._decided(ended))
            except Refused as refusal:
                note(str(refusal))
                if self._how == "always":
                    return

    async def _decided(self, pause: Paused) -> StreamEvent | None:
        answer = Approve() if self._how == "always" else await ask(pause)
        match answer:
            case Later():
                return None
            case Reject(reason=reason):
                denied = await self._engine.decide(
                    pause.key, approve=False, by=person(None), user_id=self._context.user_id, comment=reason
                )
                await self._stream.tell(denied)
                return None
            case Approve(arguments=arguments):
                decided = await self._engine.decide(
                    pause.key,
                    approve=True,
                    by=person(None),
                    user_id=self._context.user_id,
                    comment=f"run --approve {self._how}",
                    arguments=arguments,
                )
                await self._stream.tell(decided)
                return await self._resumed(pause.key) if isinstance(decided, Approved) else None

    async def _resumed(self, key: str) -> StreamEvent | None:
        return await self._stream.show(self._engine.resume(key, self._context))
