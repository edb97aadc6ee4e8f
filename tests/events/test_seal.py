"""The hash chain: what is sealed cannot be changed without a trace."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest
from sqlalchemy import text

from events import EventLog, Proposed
from events.seal import GENESIS, Seal, check_seals, last_seal, seal
from tests.events.appends import proposed
from tests.logs import opened, recorded_events, store_raw, tamper

__all__ = ()

pytestmark = pytest.mark.anyio


@pytest.fixture
async def log(database_url: str) -> AsyncIterator[EventLog]:
    """An open log."""
    async with opened(database_url) as log:
        yield log


async def fill(log: EventLog, count: int, message_id: str = "m") -> None:
    async def append(first: Proposed) -> None:
        await log.append(first.key, [first], 0, "u")

    async with anyio.create_task_group() as tasks:
        for number in range(count):
            tasks.start_soon(append, proposed(f"c{number}", message_id=message_id))


async def problems(log: EventLog) -> list[tuple[int, str]]:
    return [(e.seal.last, e.problem) async for e in check_seals(log) if e.problem is not None]


async def chain(log: EventLog) -> list[Seal]:
    return [entry.seal async for entry in check_seals(log)]


async def test_an_empty_log_has_nothing_to_seal(log: EventLog) -> None:
    assert await seal(log) == 0
    assert await last_seal(log.store) is None
    assert await chain(log) == []


async def test_ranges_follow_each_other_and_cover_everything(log: EventLog) -> None:
    await fill(log, 1100)
    assert await seal(log) == 1100
    await fill(log, 5, "n")
    assert await seal(log) == 5
    assert await seal(log) == 0
    links = await chain(log)
    assert [link.count for link in links] == [1000, 100, 5]
    assert [link.first for link in links] == [1, links[0].last + 1, links[1].last + 1]
    assert [link.previous for link in links] == [GENESIS, links[0].digest, links[1].digest]
    assert links[-1].last == await log.head()
    assert await last_seal(log.store) == links[-1]
    assert await problems(log) == []


async def test_events_of_unknown_kinds_are_sealed_too(log: EventLog) -> None:
    await fill(log, 2)
    await store_raw(log, (await recorded_events(log))[0], version=2, type="dreamt", data="{}")
    assert await seal(log) == 3
    await tamper(log, "UPDATE tool_call_events SET data = '{ }' WHERE type = 'dreamt'")
    assert len(await problems(log)) == 1


CHANGES = (
    "data = data || ' '",
    "data = replace(data, 'counter', 'caunter')",
    "type = 'failed'",
    "schema_version = 2",
    "id = 'x'",
    "key = 'x'",
    "tenant = 'ux'",
    "version = 9",
    "recorded_at = (SELECT max(recorded_at) FROM tool_call_events)",
)


async def test_a_changed_or_removed_record_breaks_its_seal(log: EventLog) -> None:
    await fill(log, 3)
    await fill(log, 1, "later")
    await seal(log)
    await tamper(log, "CREATE TABLE kept AS SELECT * FROM tool_call_events")
    attacks = [f"UPDATE tool_call_events SET {change} WHERE position = 2" for change in CHANGES]
    attacks += ["DELETE FROM tool_call_events WHERE position = 2", "DELETE FROM tool_call_events"]
    for attack in attacks:
        await tamper(log, attack)
        assert len(await problems(log)) == 1, attack
        await tamper(log, "DELETE FROM tool_call_events", "INSERT INTO tool_call_events SELECT * FROM kept")
        assert await problems(log) == []


async def test_a_record_slipped_into_a_hole_breaks_the_seal(log: EventLog) -> None:
    await fill(log, 1)
    entry = (await recorded_events(log))[0]
    first = await store_raw(log, entry, version=2, type="dreamt")
    await store_raw(log, entry, version=3, type="dreamt")
    await tamper(log, f"DELETE FROM tool_call_events WHERE position = {first}")
    await seal(log)
    assert await problems(log) == []
    await log.store.write(
        [
            text(
                f"INSERT INTO tool_call_events SELECT {first}, stream, 2, tenant, key, 'y', type, schema_version, "
                "recorded_at, data FROM tool_call_events WHERE version = 3"
            )
        ]
    )
    assert len(await problems(log)) == 1


SEAL_CHANGES = (
    "DELETE FROM tool_call_seals WHERE first = 1",
    "UPDATE tool_call_seals SET digest = 'x' WHERE first = 1",
    "UPDATE tool_call_seals SET previous = 'x' WHERE first > 1",
    "UPDATE tool_call_seals SET count = count + 1 WHERE first = 1",
    "UPDATE tool_call_seals SET last = last + 1 WHERE first > 1",
    "UPDATE tool_call_seals SET first = first + 1 WHERE first > 1",
)


async def test_a_changed_or_removed_seal_is_found(log: EventLog) -> None:
    await fill(log, 3)
    await seal(log)
    await fill(log, 3, "n")
    await seal(log)
    await tamper(log, "CREATE TABLE kept AS SELECT * FROM tool_call_seals")
    for change in SEAL_CHANGES:
        await tamper(log, change)
        assert await problems(log) != [], change
        await tamper(log, "DELETE FROM tool_call_seals", "INSERT INTO tool_call_seals SELECT * FROM kept")
        assert await problems(log) == []


async def test_many_sealers_make_one_chain(log: EventLog) -> None:
    sealed: list[int] = []

    async def restless() -> None:
        for _ in range(20):
            sealed.append(await seal(log))

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(restless)
        for turn in range(20):
            tasks.start_soon(fill, log, 10, f"m{turn}")
    sealed.append(await seal(log))
    assert sum(sealed) == 200
    assert await problems(log) == []
    assert sum(link.count for link in await chain(log)) == 200
