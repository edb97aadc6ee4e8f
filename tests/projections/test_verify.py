"""``verify`` finds what is wrong, wherever it is, and nothing where nothing is."""

from __future__ import annotations

import anyio
import pytest
from sqlalchemy import text

from events import Confirmed, EventLog, Executed, Failed, LateOutcome, Proposed
from events.codec import encode_json
from events.seal import seal
from projections import Report, Resume, verify
from tests.events.appends import follow, proposed
from tests.lives import live, live_all
from tests.logs import recorded_events, store_raw, tamper

__all__ = ()

pytestmark = pytest.mark.anyio


def kinds(report: Report) -> set[str]:
    return {problem.kind for problem in report.problems}


async def test_a_sound_log_has_no_problems(log: EventLog) -> None:
    calls = await live_all(log)
    await seal(log)
    report = await verify(log)
    assert report.problems == ()
    events = await recorded_events(log)
    assert (report.ok, report.more, report.streams, report.events) == (True, 0, calls, len(events))
    assert (report.head, report.sealed, report.unknown) == (events[-1].position, events[-1].position, 0)
    assert "ok" in repr(report)


async def test_an_empty_log_is_sound(log: EventLog) -> None:
    assert await verify(log) == Report(ok=True)


async def test_a_step_that_the_lifecycle_forbids_is_found(log: EventLog) -> None:
    first = proposed("c1")
    await log.append(first.key, [first], 0, "u")
    [entry] = await recorded_events(log)
    step = follow(Confirmed, first)
    await store_raw(log, entry, version=2, type="confirmed", id=step.id, data=encode_json(step).decode())
    await tamper(log, "UPDATE tool_call_attempts SET status = 'confirmed', version = 2, position = 2")
    assert kinds(await verify(log)) == {"transition"}


async def test_a_change_of_event_and_row_alike_is_found_by_the_seal(log: EventLog) -> None:
    await live_all(log, tenants=("u",))
    await seal(log)
    changed = '= replace(data, \'"llm_name":"bump"\', \'"llm_name":"lump"\')'
    await tamper(
        log,
        f"UPDATE tool_call_events SET data {changed} WHERE key = 'm:c0'",
        "UPDATE tool_call_attempts SET llm_name = 'lump' WHERE key = 'm:c0'",
    )
    assert kinds(await verify(log)) == {"seal"}


async def test_text_that_is_no_text_is_found(log: EventLog) -> None:
    if log.store.dialect != "sqlite":
        return  # Postgres stores no such thing.
    await live_all(log, tenants=("u",))
    await tamper(
        log,
        "UPDATE tool_call_events SET data = CAST(x'7b22ff22' AS TEXT) WHERE key = 'm:c1' AND version = 2",
        "UPDATE tool_call_attempts SET result = CAST(x'ff' AS TEXT) WHERE key = 'm:c2'",
    )
    assert sorted(problem.key or "" for problem in (await verify(log)).problems) == ["m:c1", "m:c2"]


async def test_appends_meanwhile_cause_no_false_alarm(log: EventLog) -> None:
    await live_all(log, "m0")
    reports: list[Report] = []

    async def check() -> None:
        while len(reports) < 8:
            reports.append(await verify(log))
        tasks.cancel_scope.cancel()

    async def keep_appending(number: int) -> None:
        turn = 0
        while True:
            turn += 1
            first = proposed(f"c{turn}", message_id=f"n{number}")
            await live(log, first, [follow(Executed, first, result=turn), follow(Confirmed, first)])

    async def keep_moving(first: Proposed, version: int) -> None:
        while True:
            failure = follow(Failed, first, kind="timeout", message="late")
            await log.append(first.key, [follow(LateOutcome, first, outcome=failure)], version, "u")
            version += 1

    old = [proposed(f"old{number}") for number in range(8)]
    for first in old:
        await live(log, first, [])
    async with anyio.create_task_group() as tasks:
        for number in range(4):
            tasks.start_soon(keep_appending, number)
        for first in old:
            tasks.start_soon(keep_moving, first, 1)
        tasks.start_soon(check)
    assert [report.problems for report in reports] == [()] * len(reports)
    assert reports[-1].events > reports[0].events
    final = await verify(log)
    assert final.ok
    assert final.events == len(await recorded_events(log))


async def test_progress_only_grows_and_ends_at_the_total(log: EventLog) -> None:
    await live_all(log)
    await seal(log)
    steps: list[tuple[int, int]] = []
    await verify(log, progress=lambda done, total: steps.append((done, total)))
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert steps[-1][0] == steps[-1][1] == 2 * await log.head()


async def test_a_run_can_go_on_where_another_stopped(log: EventLog) -> None:
    await live_all(log)
    await seal(log)
    await live_all(log, "n")
    await seal(log)
    await tamper(
        log,
        "UPDATE tool_call_attempts SET worker = 'x' WHERE key IN ('m:c1', 'n:c1')",
        "UPDATE tool_call_seals SET digest = 'x' WHERE first = 1",
    )
    places: list[Resume] = []
    whole = await verify(log, checkpoint=places.append)
    assert len(whole.problems) == 6 + 2
    assert len(places) >= 4
    for place in places:
        assert await verify(log, resume=place) == whole


async def test_only_so_many_problems_are_kept(log: EventLog) -> None:
    first = proposed("c1")
    await log.append(first.key, [first], 0, "u")
    await log.store.write(
        [
            text(
                "INSERT INTO tool_call_streams (tenant, key, stream) WITH RECURSIVE n(i) AS "
                "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999) SELECT 'u', 'ghost' || i, 100 + i FROM n"
            ),
        ]
    )
    report = await verify(log)
    assert len(report.problems) + report.more == 999
