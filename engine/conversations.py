"""Reads what the log remembers of a conversation's names, once a turn."""

from __future__ import annotations

import logging

from engine.context import CallContext
from engine.remembered import NOTHING, ActionKey, Remembered
from engine.toolset import Toolset
from events.errors import LogUnavailable
from events.keys import require_storable
from events.log import EventLog

__all__ = ("Conversations",)

_log = logging.getLogger("calljournal.conversations")
_KEPT = 256
_Turn = tuple[str | None, str, str]


class Conversations:
    """What the conversations that this engine works for have called; kept for the turns at work, read from the log."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._turns: dict[_Turn, tuple[Toolset, Remembered]] = {}

    async def remembered(self, context: CallContext, toolset: Toolset, *, anew: bool = False) -> Remembered:
        """Return what the conversation has called, or nothing for calls without one.

        :param anew: read the log now; otherwise what was read for the same turn and toolset will do
        :raises Refused: if the context holds an id that no database stores
        """
        turn = _turn_of(context)
        if context.conversation_id is None:
            return NOTHING
        known = self._turns.get(turn) if turn is not None else None
        if known is not None and known[0] is toolset and not anew:
            return known[1]
        remembered = await self._read(context)
        if turn is not None:
            self._turns.pop(turn, None)
            while len(self._turns) >= _KEPT:
                del self._turns[next(iter(self._turns))]
            self._turns[turn] = (toolset, remembered)
        return remembered

    async def times_refused(self, context: CallContext, name: str) -> int:
        """Return how often the log has a name refused in this conversation (or, without one, in this turn)."""
        return (await self._read(context)).refused.get(name, 0)

    async def _read(self, context: CallContext) -> Remembered:
        from projections.names import read_names

        turn = context.run_id if context.message_id is None else context.message_id
        require_storable(context.user_id, "the user id")
        require_storable(context.conversation_id, "the conversation id")
        require_storable(turn, "the run id" if context.message_id is None else "the message id")
        try:
            uses = await read_names(
                self._log, user_id=context.user_id, conversation_id=context.conversation_id, turn=turn
            )
        except LogUnavailable as error:
            # Whether calls may run without a log is decided where they are proposed; names then mean what they say.
            _log.warning("what conversation %s has called cannot be read: %s", context.conversation_id, error)
            return NOTHING
        targets: dict[str, ActionKey] = {}
        refused: dict[str, int] = {}
        for use in uses:
            if use.refused:
                refused[use.llm_name] = refused.get(use.llm_name, 0) + use.refused
            if use.resolved and use.tool_id is not None:
                targets.setdefault(use.llm_name, (use.tool_id, use.action_name))
        return Remembered(targets, refused)


def _turn_of(context: CallContext) -> _Turn | None:
    turn = context.run_id if context.message_id is None else context.message_id
    if context.conversation_id is None or turn is None:
        return None
    return context.user_id, context.conversation_id, turn
