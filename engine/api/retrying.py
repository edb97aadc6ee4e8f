"""Retries: a request that may be repeated is sent again where that may help, within its time (TOOLS 3, BEAT)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import anyio

from engine.net.errors import Unreachable
from engine.net.reply import Reply

__all__ = ("ATTEMPTS", "RETRIED", "retried", "wait_asked_for")

ATTEMPTS: Final = 3
"""How often a request is sent, at most."""

RETRIED: Final = frozenset({429, 502, 503, 504})
"""Statuses after which a request is sent again."""

_FIRST: Final = 0.5
_LONGEST: Final = 8.0


async def retried(
    send: Callable[[], Awaitable[Reply]],
    deadline: float,
    *,
    longest: float = _LONGEST,
    statuses: frozenset[int] = RETRIED,
) -> Reply:
    """Send a request until a reply's status is not one of those, at most :data:`ATTEMPTS` times.

    Between two times it waits as long as the reply's ``Retry-After`` says, else longer each time. Where the wait would
    not end before the deadline, the last reply is what counts.

    :param deadline: a moment of AnyIO's clock
    :param longest: seconds between two attempts, where no reply says how long
    :param statuses: after which a request is sent again
    :raises Unreachable: if no attempt reached the server
    :raises NetError: what else went wrong is not retried
    """
    import tenacity

    by_itself = tenacity.wait_random_exponential(multiplier=_FIRST, max=longest)

    def wait(state: tenacity.RetryCallState) -> float:
        reply = _reply_of(state)
        asked = None if reply is None else wait_asked_for(reply.header("retry-after"), datetime.now(UTC))
        return by_itself(state) if asked is None else asked

    def is_over(state: tenacity.RetryCallState) -> bool:
        return state.attempt_number >= ATTEMPTS or anyio.current_time() + state.upcoming_sleep >= deadline

    retrying = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception_type(Unreachable)
        | tenacity.retry_if_result(lambda reply: reply.status in statuses),
        wait=wait,
        stop=is_over,
        sleep=anyio.sleep,
        retry_error_callback=_last,
    )
    return await retrying(send)


def _last(state: object) -> Reply:
    import tenacity

    assert isinstance(state, tenacity.RetryCallState)
    assert state.outcome is not None
    reply: Reply = state.outcome.result()
    return reply


def _reply_of(state: object) -> Reply | None:
    import tenacity

    assert isinstance(state, tenacity.RetryCallState)
    if state.outcome is None or state.outcome.failed:
        return None
    reply: Reply = state.outcome.result()
    return reply


def wait_asked_for(stated: str | None, now: datetime) -> float | None:
    """Return the seconds that a ``Retry-After`` asks for: a number of them, or an HTTP date; None: it says nothing."""
    text = (stated or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    moment = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
