"""State rows as typed values: one call, a whole turn, and the fold that says what they must hold."""

from __future__ import annotations

from typing import Any

import pytest

from events import EventLog, Executed, LogUnavailable, Paused, Proposed, Resumed, TransitionRejected
from events.keys import journal_key, new_id
from projections import AttemptRow, fold_row
from projections.rows import read_attempt, read_message
from tests.events.appends import follow, proposed
from tests.lives import live, live_all, lives
from tests.logs import recorded_events, tamper

__all__ = ()

pytestmark = pytest.mark.anyio


async def fold_of(log: EventLog, key: str, user_id: str | None) -> AttemptRow | None:
    row: AttemptRow | None = None
    async for recorded in log.read_stream(key, user_id=user_id):
        row = fold_row(row, recorded)
    return row


async def test_every_row_is_the_fold_of_its_events(log: EventLog) -> None:
    await live_all(log)
    for tenant in ("u", None, ""):
        rows = await read_message(log, "m", tenant)
        assert len(rows) == len(lives(proposed("x")))
        for row in rows:
            assert row == await fold_of(log, row.key, tenant)
            assert row == await read_attempt(log, row.key, tenant)


async def test_a_row_says_its_state_in_one_line(log: EventLog) -> None:
    first = proposed("c1")
    await live(log, first, [follow(Paused, first, pause_type="awaiting_approval", reason="ask")])
    assert repr(await read_attempt(log, first.key, "u")) == (
        "<AttemptRow m:c1 proposed/paused (awaiting_approval) v2 counter.bump>"
    )


async def test_a_turn_has_its_own_calls_in_order_and_no_other(log: EventLog) -> None:
    for message_id, call_id in (("m", "z"), ("m", "a:b"), ("m:a", "b2"), ("m", "b"), ("mm", "a"), ("m;", "a")):
        first = proposed(call_id, message_id=message_id)
        await log.append(first.key, [first], 0, "u")
    other = proposed("a", message_id="m", user_id="v")
    await log.append(other.key, [other], 0, "v")
    assert [row.call_id for row in await read_message(log, "m", "u")] == ["z", "a:b", "b"]
    assert [row.call_id for row in await read_message(log, "m:a", "u")] == ["b2"]
    assert await read_message(log, "nothing", "u") == []


async def test_calls_without_a_message_are_found_by_their_run(log: EventLog) -> None:
    def of_run(call_id: str, **fields: Any) -> Proposed:
        like = proposed(call_id, message_id=None, run_id="run")
        return Proposed(**({name: getattr(like, name) for name in like.__struct_fields__} | {"id": new_id()} | fields))

    first = of_run("c1", key=journal_key("c1", None, "run"))
    await log.append(first.key, [first], 0, "u")
    assert [row.key for row in await read_message(log, "run", "u")] == ["run:c1"]


async def test_a_damaged_row_is_an_error_that_names_the_call(log: EventLog) -> None:
    await live_all(log, tenants=("u",))
    await tamper(log, "UPDATE tool_call_attempts SET arguments = '{' WHERE key = 'm:c1'")
    with pytest.raises(LogUnavailable, match="m:c1"):
        await read_attempt(log, "m:c1", "u")


@pytest.mark.parametrize(
    ("suffix", "duplicate"), [("", False), ("#2", False), ("~d1", True), ("#2~d12", True), ("~dx", False)]
)
async def test_a_refused_repetition_is_told_by_its_key(log: EventLog, suffix: str, duplicate: bool) -> None:
    # The call's own id ends in ~d1 too: that alone means nothing.
    like = proposed("c~d1")
    fields = {name: getattr(like, name) for name in like.__struct_fields__}
    first = Proposed(**(fields | {"key": like.key + suffix}))
    await log.append(first.key, [first], 0, "u")
    row = await read_attempt(log, first.key, "u")
    assert row is not None
    assert row.duplicate is duplicate


async def test_the_fold_refuses_what_the_lifecycle_forbids(log: EventLog) -> None:
    first = proposed("c1")
    await live(log, first, [follow(Executed, first, result=1)])
    opening, closing = await recorded_events(log)
    with pytest.raises(TransitionRejected):
        fold_row(None, closing)
    row = fold_row(fold_row(None, opening), closing)
    with pytest.raises(TransitionRejected):
        fold_row(row, closing)
    assert row.status == "executed"


async def test_a_claim_moves_the_row_to_its_worker(log: EventLog) -> None:
    first = proposed("c1", worker="w1")
    asked = follow(Paused, first, pause_type="requires_input", reason="which?", request={"q": 1})
    await live(log, first, [asked, follow(Resumed, first, worker="w2", answer="this one")])
    row = await read_attempt(log, first.key, "u")
    assert row is not None
    assert (row.worker, row.gate, row.pause_type) == ("w2", "claimed", None)
