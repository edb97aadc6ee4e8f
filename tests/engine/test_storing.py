"""What every database stores alike: odd characters, big numbers, long results (BEHAVIOUR 6, 7, CASES JOURNAL)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import anyio
import msgspec
import pytest
from sqlalchemy import text, update

from events import (
    Executed,
    Failed,
    LogUnavailable,
    Proposed,
    Refused,
    ToolEvent,
)
from events.keys import call_digest
from projections.schema import attempts
from tests.engine.staging import (
    CONTEXT,
    bare,
    call,
    events_of,
    outcome_of,
    proved,
    row_of,
    staged,
    stream_of,
)

__all__ = ()

pytestmark = pytest.mark.anyio


async def give(value: Any, /, **kwargs: Any) -> Any:
    return value


async def test_behaviour_113_nul_is_left_out_everywhere(journal_url: str) -> None:
    async def odd(**kwargs: Any) -> dict[str, str]:
        return {"r\x00k": "r\x00v"}

    async def boom(**kwargs: Any) -> None:
        raise ValueError("e\x00r")

    async with staged(journal_url, odd) as engine:
        executed = await outcome_of(engine, call({"a\x00k": ["a\x00v"]}))
        assert isinstance(executed, Executed)
        row = await row_of(engine)
        assert row.arguments == {"ak": ["av"]}
        assert row.result == {"rk": "rv"}
        await proved(engine)
    async with staged(journal_url, boom) as engine:
        await outcome_of(engine, call(call_id="c2"))
        assert (await row_of(engine, "m:c2")).error == "ValueError: er"
        await proved(engine)


async def test_behaviour_114_other_control_characters_stay_in_arguments(sqlite_url: str) -> None:
    received: list[Any] = []

    async def take(**kwargs: Any) -> str:
        received.append(kwargs)
        return "a\x01b"

    async with staged(sqlite_url, take) as engine:
        executed = await outcome_of(engine, call({"t": "a\x01b"}))
        assert isinstance(executed, Executed)
        assert received == [{"t": "a\x01b"}]
        row = await row_of(engine)
        assert (row.arguments, row.result) == ({"t": "a\x01b"}, "ab")


async def test_behaviour_115_values_that_json_lacks(journal_url: str) -> None:
    identity, moment = UUID(int=7), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    arguments = {"u": identity, "d": moment, "n": Decimal("1.10"), "b": b"\x00\x01"}
    async with staged(journal_url, partial(give, 1)) as engine:
        proposed_event, _ = await events_of(engine, call(arguments))
        assert isinstance(proposed_event, Proposed)
        kept = {"u": str(identity), "d": "2026-01-02T03:04:05Z", "n": "1.10", "b": "AAE="}
        assert proposed_event.arguments == kept
        assert (await row_of(engine)).arguments == kept


async def test_behaviour_116_the_database_refuses_other_statuses(journal_url: str) -> None:
    async with staged(journal_url, partial(give, 1)) as engine:
        await events_of(engine, call())
        for status in ("done", "", "Executed"):
            with pytest.raises((Refused, LogUnavailable)):
                await engine.log.store.write([update(attempts).values(status=status)])
        assert (await row_of(engine)).status == "executed"


@pytest.mark.parametrize("size", [400_000, 401_000])
@pytest.mark.parametrize("unit", ["a", "\N{GRINNING FACE}"])
async def test_behaviour_123_long_results_are_whole_somewhere(journal_url: str, size: int, unit: str) -> None:
    whole = unit * size
    async with staged(journal_url, partial(give, whole)) as engine:
        executed = await outcome_of(engine, call())
        assert isinstance(executed, Executed)
        assert executed.result == whole
        kept = (await stream_of(engine))[-1]
        assert isinstance(kept, Executed)
        payloads = (await engine.log.store.read(text("SELECT count(*), max(length) FROM tool_call_payloads")))[0]
        if size == 400_000:
            assert kept.result == whole
            assert (kept.result_length, kept.result_digest) == (None, None)
            assert tuple(payloads) == (0, None)
        else:
            assert kept.result == unit * 400_000
            assert kept.result_length == size
            assert kept.result_digest is not None
            assert tuple(payloads) == (1, size)
            assert (await row_of(engine)).result == unit * 400_000
        assert (await engine.log.whole(kept, user_id="u")).result == whole
        again = await outcome_of(engine, call())
        assert isinstance(again, Executed)
        assert again.result == whole
        await proved(engine)


async def test_long_objects_come_back_as_objects(sqlite_url: str) -> None:
    rows = [{"n": number, "text": "é" * 50} for number in range(10_000)]
    async with staged(sqlite_url, partial(give, rows)) as engine:
        await events_of(engine, call())
        again = await outcome_of(engine, call())
        assert isinstance(again, Executed)
        assert again.result == rows
        assert again.result_format == "json"
        await proved(engine)


async def test_behaviour_121_122_previews(sqlite_url: str) -> None:
    for number, size in enumerate((2000, 2001, 5000)):
        async with staged(sqlite_url, partial(give, "x" * size)) as engine:
            executed = await outcome_of(engine, call(call_id=f"c{number}"))
            assert isinstance(executed, Executed)
            assert executed.preview == ("x" * 2000 if size == 2000 else "x" * 2000 + "...")
            assert executed.result == "x" * size
            assert (await row_of(engine, f"m:c{number}")).result == "x" * size


async def test_behaviour_125_results_lose_control_characters(sqlite_url: str) -> None:
    clean = "clean text"
    for number, (sent, kept) in enumerate(
        (("a\0b\0c", "abc"), ("x\x01\x08\x0b\x1f\x7f\n\t\ry", "x\n\t\ry"), (clean, clean))
    ):
        async with staged(sqlite_url, partial(give, sent)) as engine:
            executed = await outcome_of(engine, call(call_id=f"c{number}"))
            assert isinstance(executed, Executed)
            assert executed.result == kept
            if sent == kept:
                assert executed.result is clean
            assert (await row_of(engine, f"m:c{number}")).result == kept


async def test_behaviour_124_what_a_chat_stores(sqlite_url: str) -> None:
    from events.wire import chat_record

    async with staged(sqlite_url, partial(give, "x" * 3000)) as engine:
        first, executed = await events_of(engine, call({}))
        assert isinstance(first, Proposed)
        assert isinstance(executed, Executed)
        assert chat_record(first, executed) == {
            "tool_name": "counter",
            "call_id": "c1",
            "action_name": "bump",
            "arguments": {},
            "artifact_id": None,
            "result": "x" * 2000 + "...",
            "status": "completed",
        }


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("W\x00i\x00", "Wi"), ({"k\x00": 1}, {"k": 1}), ("\\u0000", "\\u0000"), ({"k": "\\u0000"}, {"k": "\\u0000"})],
)
async def test_case_journal_02_nul_on_every_database(journal_url: str, sent: Any, kept: Any) -> None:
    async with staged(journal_url, partial(give, sent)) as engine:
        executed = await outcome_of(engine, call({"a": sent}))
        assert isinstance(executed, Executed)
        assert executed.result == kept
        first, last = await stream_of(engine)
        assert isinstance(first, Proposed)
        assert first.arguments == {"a": kept}
        assert isinstance(last, Executed)
        assert last.result == kept
        row = await row_of(engine)
        assert (row.status, row.result, row.arguments) == ("executed", kept, {"a": kept})
        await proved(engine)


async def test_case_journal_02_a_call_of_a_key_with_nul(journal_url: str) -> None:
    """An id that no database stores is the model's: it loses the character, and the call runs."""
    async with staged(journal_url, partial(give, 1)) as engine:
        executed = await outcome_of(engine, call(call_id="c\x001"))
        assert isinstance(executed, Executed)
        assert executed.call_id == "c1"


async def test_case_parse_06_big_integers_in_journal_and_result(journal_url: str) -> None:
    numbers = [9007199254740993, 8765432109876543211, 123456789012345678901234567890]
    received: list[Any] = []

    async def take(**kwargs: Any) -> Any:
        received.append(kwargs)
        return {"pallets": kwargs["pallets"]}

    async with staged(journal_url, take) as engine:
        first, executed = await events_of(engine, call(f'{{"pallets": {numbers}}}'))
        assert isinstance(first, Proposed)
        assert isinstance(executed, Executed)
        assert received == [{"pallets": numbers}]
        assert executed.result == {"pallets": numbers}
        kept_first, kept_last = await stream_of(engine)
        assert isinstance(kept_first, Proposed)
        assert isinstance(kept_last, Executed)
        assert kept_first.arguments == {"pallets": numbers}
        assert kept_last.result == {"pallets": numbers}
        row = await row_of(engine)
        assert (row.arguments, row.result) == ({"pallets": numbers}, {"pallets": numbers})
        await proved(engine)


async def test_case_journal_08_digests_are_of_our_own_bytes(journal_url: str) -> None:
    sent = '{"b":1,"aa":{"y":1,"x":2},"n":1e3,"z":-0,"f":1.0,"b":2}'
    async with staged(journal_url, partial(give, 1)) as engine:
        first, _ = await events_of(engine, call(sent))
        assert isinstance(first, Proposed)
        assert first.arguments == {"b": 2, "aa": {"y": 1, "x": 2}, "n": 1000.0, "z": 0, "f": 1.0}
        row = await row_of(engine)
        assert msgspec.json.encode(row.arguments) == msgspec.json.encode(first.arguments)
        assert row.digest == first.digest == call_digest("t1", "bump", row.arguments)
        refused = await outcome_of(engine, call('{"n":1e999}', call_id="c2"))
        assert isinstance(refused, Failed)
        assert refused.kind == "invalid_arguments"
        await proved(engine)


async def test_case_journal_06_waiting_calls_hold_no_connection(journal_url: str) -> None:
    """Twenty calls run or wait; a new one, and one more decision of theirs, are journalled at once."""
    release = anyio.Event()
    running: list[int] = []

    async def slow() -> str:
        running.append(1)
        await release.wait()
        return "slow"

    ended: list[ToolEvent] = []

    async def one(engine: Any, number: int) -> None:
        ended.append(await outcome_of(engine, call(call_id=f"c{number}")))

    async with staged(journal_url, slow) as engine, AsyncExitStack() as stack:
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(one, engine, number)
            while len(running) < 20:
                await anyio.lowlevel.checkpoint()
            for number in range(20):
                # Streams that their consumers hold open after the first event.
                stream = engine.execute(call(call_id=f"w{number}"), CONTEXT)
                stack.push_async_callback(stream.aclose)
                await anext(stream)
            with anyio.fail_after(5):
                failed_event = await outcome_of(engine, call(name="nothing"), bare)
                assert await engine.confirm("m", user_id="u") == 0
            assert isinstance(failed_event, Failed)
            release.set()
        assert all(isinstance(event, Executed) for event in ended)
