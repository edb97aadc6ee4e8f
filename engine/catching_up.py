"""Before a call is read, what is spooled of it goes to the log: what ran must not look as if it had not."""

from __future__ import annotations

import anyio

from engine.runtime import Runtime
from events.errors import LogUnavailable
from events.keys import tenant_column

__all__ = ("catch_up",)


async def catch_up(runtime: Runtime, user_id: str | None, *, key: str = "", turn: str = "") -> None:
    """See that nothing of a call, or of a turn's calls, is only in this machine's spool; nearly always nothing is.

    :param turn: the message's id, or the run's
    :raises LogUnavailable: if something is, and cannot be written now
    """
    spool, draining = runtime.spool, runtime.draining
    if spool is None or draining is None or not await spool.may_hold():
        return
    tenant = tenant_column(user_id)
    if not await spool.holds(tenant, key, turn):
        return
    with anyio.move_on_after(runtime.settings.limits.cleanup):
        await draining.drain()
    if await spool.holds(tenant, key, turn):
        what = f"call {key!r}" if key else f"a call of {turn!r}"
        raise LogUnavailable(f"what became of {what} is still in the spool {spool.folder}; try again")
