"""One event appended to its own stream: the same as any append, and nothing besides."""

from __future__ import annotations

import pytest

from events import EventLog, Executed, Failed, Refused, TransitionRejected, VersionConflict
from events.codec import encode_json
from events.keys import call_digest
from projections import verify
from tests.events.appends import follow, proposed
from tests.logs import recorded_events

__all__ = ()

pytestmark = pytest.mark.anyio


async def test_it_returns_the_event_as_the_log_has_it(log: EventLog) -> None:
    first = proposed("c1")
    opening = await log.append_one(first, 0)
    closing = await log.append_one(follow(Executed, first, result="ok"), 1, result_json=encode_json("ok"))
    assert [record.event for record in await recorded_events(log)] == [opening, closing]
    assert first.position is None
    assert (await verify(log)).ok


async def test_again_it_returns_what_is_recorded(log: EventLog) -> None:
    first = proposed("c1")
    opening = await log.append_one(first, 0)
    assert await log.append_one(first, 0) == opening
    assert [record.event for record in await recorded_events(log)] == [opening]


async def test_what_may_not_be_is_refused(log: EventLog) -> None:
    first = proposed("c1")
    with pytest.raises(TransitionRejected, match="not there yet"):
        await log.append_one(follow(Executed, first), 0)
    await log.append_one(first, 0)
    with pytest.raises(TransitionRejected, match="there already"):
        await log.append_one(first, 1)
    with pytest.raises(VersionConflict):
        await log.append_one(proposed("c1"), 0)
    await log.append_one(follow(Failed, first, kind="exception", message="m"), 1)
    with pytest.raises(TransitionRejected):
        await log.append_one(follow(Executed, first), 2)
    with pytest.raises(Refused, match="half of a surrogate pair"):
        await log.append_one(proposed("c\ud800"), 0)
    with pytest.raises(Refused, match="no JSON form"):
        await log.append_one(proposed("c3", arguments={"a": object()}, digest=call_digest("t", "a", {})), 0)


async def test_a_long_result_is_kept_apart(log: EventLog) -> None:
    first = proposed("c1")
    await log.append_one(first, 0)
    text = "é" * 2_100_000
    closing = await log.append_one(follow(Executed, first, result=text), 1, result_json=encode_json(text))
    assert isinstance(closing, Executed)
    assert closing.result_length == len(text)
    assert (await log.whole(closing, user_id=first.user_id)).result == text
