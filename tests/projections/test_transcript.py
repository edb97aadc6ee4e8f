"""The transcript: every call of a turn with its result, in call order."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from events import Approved, Denied, EventLog, Executed, Failed, Paused
from projections import transcript
from tests.events.appends import follow, proposed
from tests.lives import live

__all__ = ()

pytestmark = pytest.mark.anyio


async def test_calls_come_in_order_with_what_became_of_them(log: EventLog) -> None:
    fine, failing, forbidden, waiting = (proposed(name) for name in ("z", "y", "x", "w"))
    await live(log, fine, [follow(Executed, fine, result={"n": 1})])
    await live(log, failing, [follow(Failed, failing, kind="exception", message="boom")])
    await live(log, forbidden, [follow(Denied, forbidden, reason="policy", message="not here")])
    await live(log, waiting, [follow(Paused, waiting, pause_type="awaiting_approval", reason="ask")])
    entries = await transcript(log, "m", user_id="u")
    assert [(e.call_id, e.status, e.result, e.error) for e in entries] == [
        ("z", "executed", {"n": 1}, None),
        ("y", "failed", None, "boom"),
        ("x", "denied", None, "policy: not here"),
        ("w", "proposed", None, None),
    ]
    assert [e.pause_type for e in entries] == [None, None, None, "awaiting_approval"]


async def test_refused_repetitions_do_not_appear_and_other_calls_of_one_id_do(log: EventLog) -> None:
    first = proposed("c1")
    again = replace(proposed("c1"), key="m:c1~d1")
    other = replace(proposed("c1", arguments={"other": 1}), key="m:c1#2")
    await live(log, first, [])
    await live(log, again, [follow(Denied, again, reason="duplicate", message="running")])
    await live(log, other, [follow(Executed, other, result="two")])
    await log.append(first.key, [follow(Executed, first, result="one")], 1, "u")
    assert [(e.key, e.result) for e in await transcript(log, "m", user_id="u")] == [("m:c1", "one"), ("m:c1#2", "two")]


async def test_what_ran_is_what_was_approved(log: EventLog) -> None:
    first = proposed("c1", arguments={"n": 1})
    ask = follow(Paused, first, pause_type="awaiting_approval", reason="ask")
    edit = follow(Approved, first, by="ada", digest=first.digest, fingerprint="f", arguments={"n": 2})
    await live(log, first, [ask, edit])
    assert [e.arguments for e in await transcript(log, "m", user_id="u")] == [{"n": 2}]


async def test_a_long_result_is_there_as_a_whole(log: EventLog) -> None:
    text, plain, rows = proposed("c1"), proposed("c2"), proposed("c3")
    results = {"c1": "é" * 450_000, "c2": "x" * 400_000, "c3": ["y" * 100] * 5000}
    for first in (text, plain, rows):
        await live(log, first, [follow(Executed, first, result=results[first.call_id])])
    assert {e.call_id: e.result for e in await transcript(log, "m", user_id="u")} == results


async def test_nobody_reads_the_turn_of_another(log: EventLog) -> None:
    await live(log, proposed("c1", user_id="v"), [])
    assert await transcript(log, "m", user_id="u") == []
    assert await transcript(log, "m", user_id=None) == []
