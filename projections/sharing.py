"""Portions shared out among several hands, and what they find put in order again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from contextlib import aclosing

import anyio
from msgspec.structs import replace

from events.log import EventLog
from projections.hand import Hand
from projections.portions import Hands, LostError, Part, Portion
from projections.second import second_process

__all__ = ("Sharing", "share")


class _Share:
    """A portion that is done by somebody: what is left of it, and what was found before its turn came."""

    __slots__ = ("found", "left")

    def __init__(self, portion: Portion) -> None:
        self.left = portion
        self.found: Part | None = None

    @property
    def done(self) -> bool:
        return self.left.after == self.left.upto


class Sharing:
    """Gives out portions; ``take`` has their parts in the order of the portions."""

    def __init__(self, portions: Iterable[Portion], take: Callable[[Portion, Part], None]) -> None:
        self._shares = deque([_Share(portion) for portion in portions])
        self._free = self._shares.copy()
        self._take = take

    async def work(self, hands: Hands, *, last_first: bool = False) -> None:
        """Do portions until none is left.

        :param last_first: begin with the last one, which nobody can divide
        :raises LostError: if these hands cannot go on; what they had begun is free again
        """
        while self._free:
            share = self._free.pop() if last_first else self._free.popleft()
            last_first = False
            try:
                async with aclosing(hands.parts(share.left)) as parts:
                    async for part in parts:
                        self._put(share, part)
            except LostError:
                self._free.appendleft(share)
                raise

    def _put(self, share: _Share, part: Part) -> None:
        portion, share.left = share.left, replace(share.left, after=part.upto)
        if share is self._shares[0]:
            self._take(portion, part)
        else:
            share.found = part if share.found is None else share.found.joined(part)
        while self._shares and self._shares[0].done:
            self._shares.popleft()
            if self._shares and self._shares[0].found is not None:
                self._take(self._shares[0].left, self._shares[0].found)
                self._shares[0].found = None


async def share(
    log: EventLog, portions: Iterable[Portion], take: Callable[[Portion, Part], None], head: int | None
) -> None:
    """Do all portions; ``take`` is called with each part, in the order of the portions.

    :param head: give some to a second process, which must see the log up to there; None: to nobody
    :raises LogUnavailable: if the database cannot be read
    """
    sharing = Sharing(portions, take)
    if head is None:
        await sharing.work(Hand(log))
        return
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_share_with_second, log, sharing, head)
            await sharing.work(Hand(log))
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0]  # noqa: B904 - it has a cause of its own


async def _share_with_second(log: EventLog, sharing: Sharing, head: int) -> None:
    try:
        async with second_process(log, head) as second:
            await sharing.work(second, last_first=True)
    except LostError:
        # The hand of this process may have nothing left to do by now.
        await sharing.work(Hand(log))
