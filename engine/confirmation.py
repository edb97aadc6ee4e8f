"""``confirm``: the message that carries its calls' results is stored (BEHAVIOUR 118)."""

from __future__ import annotations

from engine.catching_up import catch_up
from engine.runtime import Runtime
from events.errors import Conflict
from events.types import Executed
from projections.rows import read_message

__all__ = ("confirm",)


async def confirm(runtime: Runtime, message_id: str, user_id: str | None) -> int:
    """Confirm every executed call of a message, all or none, and return how many; again: 0.

    :raises LogUnavailable: if it cannot be written, or an outcome is still in this machine's spool
    """
    await catch_up(runtime, user_id, turn=message_id)
    while True:
        rows = [
            row
            for row in await read_message(runtime.log, message_id, user_id)
            if row.status == "executed" and row.message_id == message_id
        ]
        executed: list[tuple[Executed, int]] = []
        for row in rows:
            async for record in runtime.log.read_stream(row.key, user_id=user_id):
                if isinstance(record.event, Executed):
                    executed.append((record.event, row.version))
        if not executed:
            return 0
        try:
            return await runtime.journal.confirm_all(executed)
        except Conflict:
            # Somebody else confirmed some of them: look again.
            continue
