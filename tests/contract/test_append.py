"""Appending: expected versions, resends, tenants, the lifecycle, all or none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest
from sqlalchemy import insert, update

from events import (
    Append,
    Approved,
    Confirmed,
    Denied,
    EventLog,
    Executed,
    Failed,
    JournalError,
    LateOutcome,
    NotFound,
    Paused,
    Proposed,
    Recorded,
    Refused,
    Resumed,
    ToolEvent,
    TransitionRejected,
    VersionConflict,
)
from events.keys import call_digest
from events.schema import leases
from events.types import Executed as ExecutedEvent
from projections import AttemptRow, verify
from projections.rows import read_attempt, read_message
from projections.schema import attempts
from tests.events.appends import follow, proposed
from tests.logs import recorded_events

__all__ = ()

pytestmark = pytest.mark.anyio


async def propose(log: EventLog, call_id: str = "c1", **fields: Any) -> Proposed:
    first = proposed(call_id, **fields)
    await log.append(first.key, [first], 0, first.user_id)
    return first


async def push(log: EventLog, *events: ToolEvent, after: int) -> list[Recorded[ToolEvent]]:
    return await log.append(events[0].key, events, after, events[0].user_id)


async def row_of(log: EventLog, event: ToolEvent) -> AttemptRow:
    row = await read_attempt(log, event.key, event.user_id)
    assert row is not None
    return row


async def test_an_append_returns_what_is_recorded(log: EventLog) -> None:
    first = proposed("c1")
    before = datetime.now(UTC)
    [opening] = await log.append(first.key, [first], 0, "u")
    closing = await push(log, follow(Executed, first, result="ok"), follow(Confirmed, first), after=1)
    assert [entry.version for entry in (opening, *closing)] == [1, 2, 3]
    positions = [entry.position for entry in (opening, *closing)]
    assert positions == sorted(set(positions))
    assert [entry.event.position for entry in (opening, *closing)] == positions
    assert before - timedelta(seconds=5) <= opening.recorded_at <= datetime.now(UTC) + timedelta(seconds=5)
    assert await recorded_events(log) == [opening, *closing]


async def test_another_version_is_a_conflict_that_says_which(log: EventLog) -> None:
    first = await propose(log)
    with pytest.raises(VersionConflict) as conflict:
        await push(log, follow(Executed, first, result=1), after=3)
    assert (conflict.value.expected, conflict.value.actual) == (3, 1)
    with pytest.raises(VersionConflict) as conflict:
        await push(log, follow(Executed, proposed("c2"), result=1), after=1)
    assert conflict.value.actual is None


async def test_the_same_events_again_are_recorded_once(log: EventLog) -> None:
    first = proposed("c1")
    opening = await push(log, first, after=0)
    pause = follow(Paused, first, pause_type="awaiting_approval", reason="ask")
    approval = follow(Approved, first, by="ada", digest=first.digest, fingerprint="f")
    waiting = await push(log, pause, approval, after=1)
    assert await push(log, first, after=0) == opening
    assert await push(log, pause, approval, after=1) == waiting
    assert await recorded_events(log) == opening + waiting


async def test_a_rival_is_not_a_resend(log: EventLog) -> None:
    first = await propose(log)
    with pytest.raises(VersionConflict):
        await push(log, proposed("c1"), after=0)
    await push(log, follow(Executed, first, result=1), after=1)
    with pytest.raises(VersionConflict):
        await push(log, follow(Failed, first, kind="timeout", message="late"), after=1)
    with pytest.raises(TransitionRejected) as rejected:
        await push(log, follow(Failed, first, kind="timeout", message="late"), after=2)
    assert "executed" in str(rejected.value)
    assert [entry.version for entry in await recorded_events(log)] == [1, 2]


@pytest.mark.parametrize(("mine", "theirs"), [("u", "v"), (None, "")])
async def test_tenants_never_meet(log: EventLog, mine: str | None, theirs: str | None) -> None:
    first = await propose(log, user_id=mine)
    other = proposed("c1", user_id=theirs)
    with pytest.raises(VersionConflict) as conflict:
        await push(log, follow(Executed, other, result="stolen"), after=1)
    assert conflict.value.actual is None
    assert [entry async for entry in log.read_stream(first.key, user_id=theirs)] == []
    assert await read_attempt(log, first.key, theirs) is None
    await push(log, other, after=0)
    await push(log, follow(Denied, other, reason="policy", message="no"), after=1)
    assert (await row_of(log, first)).status == "proposed"
    assert [entry.user_id async for entry in log.read(user_id=mine)] == [mine]
    assert [entry.user_id async for entry in log.read(user_id=theirs)] == [theirs, theirs]


async def test_an_event_of_another_tenant_or_call_is_refused(log: EventLog) -> None:
    first = proposed("c1")
    with pytest.raises(Refused):
        await log.append(first.key, [first], 0, "v")
    with pytest.raises(Refused):
        await log.append("other", [first], 0, "u")
    with pytest.raises(Refused):
        await log.append(first.key, [], 0, "u")
    assert await log.head() == 0


async def test_several_streams_all_or_none(log: EventLog) -> None:
    one, two = await propose(log, "c1"), await propose(log, "c2")
    results = [follow(Executed, first, result=1) for first in (one, two)]
    await push(log, follow(Failed, two, kind="timeout", message="slow"), after=1)
    before = await recorded_events(log)
    appends = [Append(key=e.key, events=(e,), expected_version=1, user_id="u") for e in results]
    with pytest.raises(VersionConflict):
        await log.append_many(appends)
    assert await recorded_events(log) == before
    assert (await row_of(log, one)).status == "proposed"
    three = await propose(log, "c3")
    both = (results[0], follow(Executed, three, result=3))
    entries = await log.append_many([Append(key=e.key, events=(e,), expected_version=1, user_id="u") for e in both])
    assert [[e.version for e in entry] for entry in entries] == [[2], [2]]
    assert [(await row_of(log, e)).status for e in both] == ["executed", "executed"]
    with pytest.raises(Refused):
        await log.append_many([appends[0], appends[0]])


async def test_a_refused_append_leaves_its_neighbours_alone(log: EventLog) -> None:
    refused: list[str] = []

    async def run(number: int) -> None:
        first = await propose(log, f"c{number}")
        if number % 3 == 0:
            try:
                await push(log, follow(Confirmed, first), after=1)
            except TransitionRejected:
                refused.append(first.key)
        else:
            await push(log, follow(Executed, first, result=number), after=1)

    async with anyio.create_task_group() as tasks:
        for number in range(60):
            tasks.start_soon(run, number)
    assert len(refused) == 20
    assert len(await recorded_events(log)) == 60 + 40
    assert (await verify(log)).ok


async def test_behaviour_101_102_the_key_has_the_message_and_so_two_messages_two_rows(log: EventLog) -> None:
    name = "functions.create_artifact:0"
    for message_id in ("M", "N"):
        first = await propose(log, name, message_id=message_id)
        await push(log, follow(Executed, first, result=message_id), after=1)
    rows = [row for message in ("M", "N") for row in await read_message(log, message, "u")]
    assert [(row.key, row.message_id, row.status, row.result) for row in rows] == [
        (f"M:{name}", "M", "executed", "M"),
        (f"N:{name}", "N", "executed", "N"),
    ]
    assert await read_attempt(log, name, "u") is None


def ends_of(first: Proposed) -> dict[str, list[ToolEvent]]:
    result, failure = follow(Executed, first, result=1), follow(Failed, first, kind="exception", message="boom")
    return {
        "executed": [result],
        "confirmed": [result, follow(Confirmed, first)],
        "failed": [failure],
        "denied": [follow(Denied, first, reason="policy", message="no")],
    }


async def test_behaviour_108_what_has_ended_does_not_move(log: EventLog) -> None:
    for end in ("executed", "confirmed", "failed", "denied"):
        first = await propose(log, end)
        last = (await push(log, *ends_of(first)[end], after=1))[-1].version
        row = await row_of(log, first)
        assert row.status == end
        for event in (follow(Failed, first, kind="exception", message="x"), follow(Executed, first, result=2)):
            with pytest.raises(TransitionRejected):
                await push(log, event, after=last)
        assert await row_of(log, first) == row


async def test_behaviour_116_no_other_status_can_be_written(log: EventLog) -> None:
    first = await propose(log)
    for column, value in (("status", "done"), ("gate", "ajar")):
        with pytest.raises(JournalError):
            await log.store.write([update(attempts).values({column: value})])
    assert (await row_of(log, first)).status == "proposed"


async def test_behaviour_123_a_long_result_has_its_whole_in_the_payload_table(log: EventLog) -> None:
    short, long = await propose(log, "c1"), await propose(log, "c2")
    texts = {short.key: "漢" * 400_000, long.key: "é" * 401_000}
    for first in (short, long):
        await push(log, follow(Executed, first, result=texts[first.key]), after=1)
    events = {e.key: e.event for e in await recorded_events(log) if isinstance(e.event, Executed)}
    inline, cut = events[short.key], events[long.key]
    assert isinstance(inline, ExecutedEvent)
    assert isinstance(cut, ExecutedEvent)
    assert (inline.result, inline.result_length, inline.result_digest) == (texts[short.key], None, None)
    assert (cut.result, cut.result_length) == ("é" * 400_000, 401_000)
    assert cut.result_digest is not None
    assert (await log.whole(cut, user_id="u")).result == texts[long.key]
    with pytest.raises(NotFound):
        await log.whole(cut, user_id="v")
    assert (await row_of(log, long)).result == "é" * 400_000
    assert (await verify(log)).ok


async def test_a_long_result_that_is_no_text_comes_back_as_it_was(log: EventLog) -> None:
    first = await propose(log)
    result = {"rows": [{"n": number, "text": "x" * 50} for number in range(8000)]}
    [entry] = await push(log, follow(Executed, first, result=result), after=1)
    assert isinstance(entry.event, ExecutedEvent)
    assert (await log.whole(entry.event, user_id="u")).result == result


async def test_only_a_dead_worker_can_be_declared_dead(log: EventLog) -> None:
    now = datetime.now(UTC)
    for worker, seconds in (("alive", 60), ("over", -1)):
        lease = {"worker": worker, "started_at": now, "expires_at": now + timedelta(seconds=seconds)}
        await log.store.write([insert(leases).values(lease)])
    for worker in ("over", "never there"):
        first = await propose(log, worker, worker=worker)
        orphaned = follow(Failed, first, kind="orphaned", message="outcome unknown")
        await log.append(first.key, [orphaned], 1, "u", dead_worker=worker)
        assert (await row_of(log, first)).status == "failed"
    first = await propose(log, worker="alive")
    orphaned = follow(Failed, first, kind="orphaned", message="outcome unknown")
    with pytest.raises(TransitionRejected, match="live worker"):
        await log.append(first.key, [orphaned], 1, "u", dead_worker="alive")
    assert (await row_of(log, first)).status == "proposed"


async def test_a_late_outcome_sets_a_flag_and_nothing_else(log: EventLog) -> None:
    first = await propose(log)
    await push(log, follow(Failed, first, kind="orphaned", message="unknown"), after=1)
    outcome = follow(Executed, first, result="came after all", late=True)
    await push(log, follow(LateOutcome, first, outcome=outcome), after=2)
    row = await row_of(log, first)
    assert (row.status, row.result, row.late, row.version) == ("failed", None, True, 3)


async def test_after_a_late_outcome_a_call_cannot_be_paused_approved_or_resumed(log: EventLog) -> None:
    first = await propose(log)
    outcome = follow(Executed, first, result=1)
    await push(log, follow(LateOutcome, first, outcome=outcome), after=1)
    pause = follow(Paused, first, pause_type="awaiting_approval", reason="ask")
    for event in (pause, follow(Resumed, first, worker="w2", takeover=True)):
        with pytest.raises(TransitionRejected):
            await push(log, event, after=2)
    await push(log, follow(Executed, first, result=2), after=2)
    assert (await row_of(log, first)).late


async def test_proposed_and_executed_together_are_marked_late(log: EventLog) -> None:
    first = proposed("c1", late=True)
    await log.append(first.key, [first, follow(Executed, first, result=1, late=True)], 0, "u")
    row = await row_of(log, first)
    assert (row.status, row.late, row.version) == ("executed", True, 2)


async def test_later_events_must_be_able_to_follow_the_first(log: EventLog) -> None:
    first = proposed("c1")
    with pytest.raises(TransitionRejected):
        await log.append(first.key, [first, follow(Confirmed, first)], 0, "u")
    with pytest.raises(TransitionRejected):
        await log.append(first.key, [first, proposed("c1")], 0, "u")
    assert await log.head() == 0


IDS = ("c", "漢字" * 300, "a:b", "a;b", "~d1", "#2", "'; DROP TABLE x; --", '"\\', " ", "\n", "x" * 1990, "😀", "%_%")


async def test_ids_of_any_text_are_kept(log: EventLog) -> None:
    for name in IDS:
        await propose(log, name, tool_id=name, agent_id=name)
    rows = {row.call_id: row for row in await read_message(log, "m", "u")}
    assert set(rows) == set(IDS)
    assert all(row.tool_id == row.agent_id == row.call_id for row in rows.values())
    assert (await verify(log)).ok


async def test_an_identifier_that_cannot_be_stored_is_refused_before_anything_is_written(log: EventLog) -> None:
    for field in ("call_id", "message_id", "user_id", "tool_id"):
        for bad in ("a\0b", "\ud83d", "x" * 3000):
            fields: dict[str, Any] = {"call_id": "c1", field: bad}
            with pytest.raises(Refused):
                await propose(log, **fields)
    assert await log.head() == 0


async def test_content_without_a_json_form_is_refused_before_anything_is_written(log: EventLog) -> None:
    for bad in ("\ud83d", object(), {1j: 1}):
        with pytest.raises(Refused, match="JSON"):
            await propose(log, arguments={"x": bad})
    assert await log.head() == 0


async def test_case_journal_02_nul_in_contents_is_stored_and_read_back_alike(log: EventLog) -> None:
    spelled, utf16 = "\\u0000", "W\0i\0"
    for number, content in enumerate((utf16, {"k\0": 1}, spelled)):
        first = await propose(log, f"c{number}", arguments={"x": content})
        await push(log, follow(Executed, first, result=content), after=1)
    rows = await read_message(log, "m", "u")
    assert [row.result for row in rows] == [utf16, {"k\0": 1}, spelled]
    assert [row.arguments["x"] for row in rows] == [utf16, {"k\0": 1}, spelled]
    assert len(spelled) == 6


async def test_case_journal_08_arguments_and_their_digest_come_back_as_they_were(log: EventLog) -> None:
    arguments = {"b": 2, "aa": {"y": 1, "x": 2}, "n": 1000.0, "z": 0, "f": 1.0, "big": 10**30, "small": -5e-324}
    first = await propose(log, arguments=arguments)
    row = await row_of(log, first)
    assert repr(row.arguments) == repr(arguments)
    assert call_digest(None, row.action_name, row.arguments) == row.digest == first.digest
