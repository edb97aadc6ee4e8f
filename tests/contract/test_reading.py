"""Reading: order, pages, tenants, the head, and what other releases wrote."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from events import EventLog, Executed, Failed, LogUnavailable, Proposed
from events.codec import SCHEMA_VERSIONS, Codec
from projections import rebuild, verify
from projections.rows import read_attempt
from tests.events.appends import follow, proposed
from tests.logs import opened, recorded_events, store_raw, tamper

__all__ = ()

pytestmark = pytest.mark.anyio


async def fill(log: EventLog, calls: int, **fields: Any) -> list[Proposed]:
    made = [proposed(f"c{number}", **fields) for number in range(calls)]

    async def append(first: Proposed) -> None:
        await log.append(first.key, [first], 0, first.user_id)

    async with anyio.create_task_group() as tasks:
        for first in made:
            tasks.start_soon(append, first)
    return made


async def test_an_empty_log_is_read_to_its_end(log: EventLog) -> None:
    assert await log.head() == 0
    assert await recorded_events(log) == []
    assert [entry async for entry in log.read(user_id="u")] == []
    assert [entry async for entry in log.read_stream("nothing", user_id="u")] == []


async def test_events_come_in_order_of_position_page_by_page(log: EventLog) -> None:
    made = await fill(log, 2100)
    entries = await recorded_events(log)
    positions = [entry.position for entry in entries]
    assert positions == sorted(set(positions))
    assert {entry.event.id for entry in entries} == {first.id for first in made}
    assert await log.head() == positions[-1]
    middle = positions[1000]
    assert await recorded_events(log, after=middle) == entries[1001:]


async def test_a_reader_stops_where_the_log_ended_when_it_began(log: EventLog) -> None:
    await fill(log, 3)
    seen = []
    async for entry in log.read_all():
        seen.append(entry.key)
        more = proposed(f"later{len(seen)}")
        await log.append(more.key, [more], 0, "u")
    assert len(seen) == 3


async def test_a_stream_has_its_own_events_in_order(log: EventLog) -> None:
    first, other = await fill(log, 2)
    await log.append(first.key, [follow(Failed, first, kind="timeout", message="slow")], 1, "u")
    await log.append(other.key, [follow(Executed, other, result=1)], 1, "u")
    entries = [entry async for entry in log.read_stream(first.key, user_id="u")]
    assert [(entry.version, type(entry.event).__name__) for entry in entries] == [(1, "Proposed"), (2, "Failed")]
    assert {entry.user_id for entry in entries} == {"u"}


@pytest.mark.parametrize("columns", [{"type": "dreamt"}, {"schema_version": 99}], ids=["kind", "version"])
async def test_what_this_release_does_not_know_is_kept_and_skipped(log: EventLog, columns: dict[str, Any]) -> None:
    [first] = await fill(log, 1)
    [entry] = await recorded_events(log)
    position = await store_raw(log, entry, version=2, **columns)
    await fill(log, 1, message_id="n")
    assert len(await recorded_events(log)) == 2
    assert await log.head() > position
    assert [e.version async for e in log.read_stream(first.key, user_id="u")] == [1]
    async with log.subscribe(None) as events:
        assert [(await anext(events)).version for _ in range(2)] == [1, 1]


async def test_a_call_that_a_newer_release_moved_keeps_its_row(log: EventLog) -> None:
    await fill(log, 2)
    entry = (await recorded_events(log))[0]
    position = await store_raw(log, entry, version=2, type="dreamt")
    await tamper(
        log,
        f"UPDATE tool_call_attempts SET version = 2, position = {position}, rule = 'new' WHERE key = '{entry.key}'",
    )
    report = await verify(log)
    assert (report.ok, report.unknown) == (True, 1), report.problems
    assert (await rebuild(log)).ok
    row = await read_attempt(log, entry.key, "u")
    assert row is not None
    assert (row.version, row.rule) == (2, "new")
    await tamper(log, f"UPDATE tool_call_attempts SET version = 1 WHERE key = '{entry.key}'")
    assert not (await verify(log)).ok


async def test_an_old_version_is_upcast_on_reading(log_url: str) -> None:
    if log_url == "sqlite://":
        return
    async with opened(log_url) as log:
        first = proposed("c1")
        failure = follow(Failed, first, kind="timeout", message="slow")
        await log.append(first.key, [first, failure], 0, "u")

    def second(content: dict[str, Any]) -> dict[str, Any]:
        return content | {"message": f"{content['message']}, said version 1"}

    codec = Codec({("failed", 1): second}, {**SCHEMA_VERSIONS, "failed": 2})
    async with opened(log_url, codec) as log:
        events = [entry.event for entry in await recorded_events(log)]
        assert isinstance(events[1], Failed)
        assert events[1].message == "slow, said version 1"
        fresh = proposed("c2")
        newer = follow(Failed, fresh, kind="timeout", message="again")
        await log.append(fresh.key, [fresh, newer], 0, "u")
        assert [e.event for e in await recorded_events(log)][-1].id == newer.id
    async with opened(log_url) as log:
        assert [e.event.id for e in await recorded_events(log)] == [first.id, failure.id, fresh.id]


async def test_a_damaged_text_is_an_error_that_says_where(log: EventLog) -> None:
    await fill(log, 3)
    position = (await recorded_events(log))[1].position
    await tamper(log, f'UPDATE tool_call_events SET data = \'{{"type": "prop\' WHERE position = {position}')
    with pytest.raises(LogUnavailable, match=f"position {position}"):
        await recorded_events(log)
