"""Rates: so many calls in so many seconds, as one number that is kept (the generic cell rate algorithm)."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

__all__ = ("SECOND", "Rate", "TooSoon")

SECOND: Final = 1_000_000
"""Microseconds: moments and waits are whole numbers of them."""

_Calls = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
_Seconds = Annotated[float, msgspec.Meta(gt=0, le=31 * 86_400)]


class TooSoon(Exception):
    """A turn would come later than anybody waits for.

    :ivar seconds: until it may come
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"not for another {seconds:.3g} s")
        self.seconds = seconds


class Rate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A bucket of ``burst`` calls that fills evenly, ``calls`` in ``seconds``.

    What is kept of it is when the bucket is full again (``due``); so it is empty where that is ``capacity`` away. No
    stretch of ``seconds`` sees more than ``calls`` and ``burst`` together.

    :ivar burst: calls at once; None: as many as ``calls``
    """

    calls: _Calls
    seconds: _Seconds
    burst: _Calls | None = None

    @property
    def every(self) -> int:
        """Microseconds that a call takes to be refilled."""
        return max(1, round(self.seconds * SECOND / self.calls))

    @property
    def capacity(self) -> int:
        """Microseconds that the whole bucket takes."""
        return self.every * (self.calls if self.burst is None else self.burst)

    def taken(self, due: int, now: int, patience: int = 0) -> int | None:
        """Return when the bucket is full again if a call is taken from it; None: it is empty.

        :param patience: microseconds that may be waited, so that what is not there yet can be taken
        """
        base = max(due, now)
        return None if base + self.every - now > self.capacity + patience else base + self.every

    def wait(self, due: int, now: int) -> int:
        """Return how long a call that was taken has to wait, ``due`` being what came of taking it."""
        return max(0, due - now - self.capacity)

    def lack(self, due: int, now: int) -> int:
        """Return how long it is until a call can be taken."""
        return max(0, max(due, now) + self.every - now - self.capacity)

    def __str__(self) -> str:
        return f"{self.calls} {'call' if self.calls == 1 else 'calls'} per {self.seconds:g} s"
