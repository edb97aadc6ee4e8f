"""The pace of requests to a service: no faster than it allows, each waiting for its turn."""

from __future__ import annotations

from typing import Final

import anyio

from engine.remote.service_error import ServiceError

__all__ = ("Pace",)

_KEYS: Final = 4096


class Pace:
    """Keeps any number of paces apart, each by its key; for this process only."""

    def __init__(self) -> None:
        from throttled.store import MemoryStore

        self._store = MemoryStore(options={"MAX_SIZE": _KEYS})

    async def turn(self, key: str, per_second: int, deadline: float) -> None:
        """Wait until the next request may go out, and count it.

        A wait that is cancelled counts nothing.

        :param deadline: a moment of AnyIO's clock
        :raises ServiceError: if its turn would come after the deadline
        """
        from throttled import Throttled, per_sec

        pace = Throttled(key=key, using="gcra", quota=per_sec(per_second, burst=1), store=self._store)
        while (outcome := pace.limit()).limited:
            wait = outcome.state.retry_after
            if anyio.current_time() + wait >= deadline:
                raise ServiceError("Too many searches are waiting for their turn; try again in a moment.")
            await anyio.sleep(wait)
