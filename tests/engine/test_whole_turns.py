"""From a provider's payload to the results that go back to it: what the field's cases say of a whole turn."""

from __future__ import annotations

import json
import logging
from functools import partial
from typing import Any

import anyio
import pytest

from engine import CallContext, Engine, ToolCall, ToolRow, parse_calls
from engine.call import unique_ids
from engine.stream import parse_stream
from events import Executed, Failed, Paused, Proposed
from tests.engine.gating import APPROVED_FIRST, NUMBER, Shelf, paused, resumed
from tests.engine.staging import (
    CONTEXT,
    ROW,
    call,
    events_of,
    outcome_of,
    proved,
    row_of,
    staged,
    staged_engine,
    stream_of,
    tool_of,
)

__all__ = ()

pytestmark = pytest.mark.anyio

ANYTHING: dict[str, Any] = {"type": "object", "properties": {}}
BAY: dict[str, Any] = {"type": "object", "properties": {"bay": {"type": "integer"}}, "required": ["bay"]}
LONG_CODE = "x = '\N{SNOWMAN}'\n" * 50


async def answered(engine: Engine, calls: list[ToolCall], family: str) -> list[dict[str, Any]]:
    """Make a turn's calls and return what goes back to the provider."""
    for wanted in calls:
        await outcome_of(engine, wanted)
    return await engine.tool_results("m", user_id="u", family=family, calls=calls)


def chat(arguments: Any, call_id: str = "c1", name: str = "bump") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"choices": [{"message": {"tool_calls": [{"id": call_id, "type": "function", "function": function}]}}]}


def started(name: str) -> list[dict[str, Any]]:
    """Return an Anthropic stream with a block that got no piece of its input."""
    block = {"type": "tool_use", "id": "c1", "name": name, "input": {}}
    return [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_stop"},
    ]


@pytest.mark.parametrize("sent", ["", "  \n", None])
async def test_case_parse_01_a_call_without_arguments_runs(journal_url: str, sent: str | None) -> None:
    shelf = Shelf()
    (wanted,) = parse_stream(started("bump"), "anthropic") if sent is None else parse_calls(chat(sent), "openai")
    async with staged(journal_url, shelf.take, parameters=NUMBER) as engine:
        proposed, executed = await events_of(engine, wanted)
        assert isinstance(proposed, Proposed)
        assert isinstance(executed, Executed)
        assert shelf.taken == [{}]
        assert proposed.arguments == {}
        assert (await row_of(engine)).arguments == {}
        inner = await outcome_of(engine, call('{"n":1,"text":""}', call_id="c2"))
        assert isinstance(inner, Executed)
        assert shelf.taken[-1] == {"n": 1, "text": ""}
        await proved(engine)


async def test_case_parse_05_what_is_approved_journalled_and_run_is_one_value(journal_url: str) -> None:
    """A string that looks like JSON stays one; a doubly encoded value is refused by name, and nobody is asked."""
    shelf = Shelf()
    labels = {"type": "array", "items": {"type": "string"}}
    schema = {"type": "object", "properties": {"labels": labels, "memo": {"type": "string"}}}
    async with staged(journal_url, shelf.take, parameters=schema, metadata=APPROVED_FIRST) as engine:
        refused = await outcome_of(engine, call(r'{"labels":"[\"wet\",\"heavy\"]","memo":"[1,2]"}'))
        assert isinstance(refused, Failed)
        assert refused.kind == "invalid_arguments"
        assert '"labels"' in refused.message
        sent = {"labels": ["wet", "heavy"], "memo": "[1,2]"}
        pause = await paused(engine, call(json.dumps(sent), call_id="c2"))
        assert pause.arguments == sent
        await engine.decide("m:c2", approve=True, by="alice", user_id="u")
        assert isinstance(await resumed(engine, "m:c2"), Executed)
        assert (await row_of(engine, "m:c2")).arguments == sent
        assert shelf.taken == [sent]


@pytest.mark.parametrize("family", ["openai", "openai.responses", "anthropic", "google", "mcp"])
async def test_case_parse_06_07_what_goes_back_has_every_digit_and_is_valid_json(sqlite_url: str, family: str) -> None:
    big = 123456789012345678901234567890

    async def measure(**kwargs: Any) -> dict[str, Any]:
        return {"pallet": 9007199254740993, "all": big, "loss": float("inf"), "gain": float("nan"), "n": 3}

    async with staged(sqlite_url, measure) as engine:
        (message,) = await answered(engine, [call({})], family)
        body = json.dumps(message, allow_nan=False)
        assert "9007199254740993" in body
        assert str(big) in body
        event = (await stream_of(engine))[-1]
        assert isinstance(event, Executed)
        assert (event.status, event.result["n"], event.result["loss"]) == ("completed", 3, None)
        json.loads(event.preview, parse_constant=pytest.fail)


@pytest.mark.parametrize("number", ["NaN", "1e999", "-Infinity"])
async def test_case_parse_07_numbers_that_json_lacks_never_reach_a_tool(sqlite_url: str, number: str) -> None:
    shelf = Shelf()
    async with staged(sqlite_url, shelf.take, parameters=ANYTHING) as engine:
        failed = await outcome_of(engine, call(f'{{"gain":{number}}}'))
        assert isinstance(failed, Failed)
        assert failed.kind == "invalid_arguments"
        assert shelf.taken == []


async def test_case_parse_08_calls_without_ids_all_run_and_are_answered_in_order(journal_url: str) -> None:
    weigh = [{"functionCall": {"name": "bump", "args": {"bay": bay}}} for bay in (1, 2)]
    given = {"functionCall": {"id": "g-9", "name": "bump", "args": {"bay": 3}}}
    response = {"candidates": [{"content": {"parts": [*weigh, given]}}]}

    async def kilos(bay: int) -> int:
        return bay * 11

    async with staged(journal_url, kilos, parameters=BAY) as engine:
        calls = parse_calls(response, "google")
        (message,) = await answered(engine, calls, "google")
        answers = [part["functionResponse"] for part in message["parts"]]
        assert [answer["response"] for answer in answers] == [{"result": 11}, {"result": 22}, {"result": 33}]
        assert answers[2]["id"] == "g-9"
        assert [answer["id"] for answer in answers] == [wanted.id for wanted in calls]
        # Parsed again, from a journal for instance, they are the same calls: nothing runs again.
        before = await engine.log.head()
        again = await answered(engine, parse_calls(json.loads(json.dumps(response)), "google"), "google")
        assert again == [message]
        assert await engine.log.head() == before
        await proved(engine)


async def test_case_parse_09_half_a_pair_spoils_nothing_after_it(
    journal_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    shelf = Shelf()
    texts = (r"\ud83d\udc0c", r"x\ud9aby", r"\udc0c\ud83d")
    kept = ["\U0001f40c", "x\ufffdy", "\ufffd\ufffd"]
    async with staged(journal_url, shelf.take, parameters=ANYTHING) as engine:
        calls = [call(f'{{"icon":"{text}"}}', call_id=f"c{place}") for place, text in enumerate(texts)]
        for family in ("openai", "openai.responses", "anthropic", "google", "mcp"):
            json.dumps(await answered(engine, calls, family), ensure_ascii=False).encode()
        assert shelf.taken == [{"icon": icon} for icon in kept]
        for place, icon in enumerate(kept):
            assert (await row_of(engine, f"m:c{place}")).arguments == {"icon": icon}
        later = CallContext(user_id="u", message_id="m2")
        assert isinstance(await outcome_of(engine, call({"icon": "ok"}), later), Executed)
        await proved(engine)


async def test_case_schema_03_a_tool_is_called_by_the_name_it_gave(sqlite_url: str) -> None:
    listed = ["crane.move", "crane:move", "crane/move", "crane move", "crane_move"]
    called: list[str] = []

    async def act(self: Any, action_name: str, /, **kwargs: Any) -> str:
        called.append(action_name)
        return action_name

    tool = tool_of(
        Shelf().take,
        name="crane",
        get_actions_metadata=lambda self: [{"name": name, "parameters": ANYTHING} for name in listed],
        execute_action=act,
    )
    async with staged_engine(sqlite_url, tool) as engine:
        prepared = await engine.prepare_tools_for_llm(CallContext(user_id="u", tool_ids=("t1",)))
        for name, (_, original) in prepared.names.items():
            executed = await outcome_of(engine, call({}, name=name, call_id=name))
            assert isinstance(executed, Executed)
            assert (executed.result, executed.action_name, executed.llm_name) == (original, original, name)
        assert sorted(called) == sorted(listed)


@pytest.mark.parametrize("sent", ['{"bay":1}{"bay":2}', "not json", "[]", '"text"', "5"])
@pytest.mark.parametrize("family", ["openai", "google"])
async def test_behaviour_034_036_039_what_is_no_object_is_never_run_as_one(
    sqlite_url: str, sent: str, family: str
) -> None:
    shelf = Shelf()
    args = {"functionCall": {"id": "c1", "name": "bump", "args": sent}}
    google = {"candidates": [{"content": {"parts": [args]}}]}
    (wanted,) = parse_calls(google if family == "google" else chat(sent), family)
    async with staged(sqlite_url, shelf.take, parameters=NUMBER) as engine:
        failed = await outcome_of(engine, wanted)
        assert isinstance(failed, Failed)
        assert failed.kind == "invalid_arguments"
        row = await row_of(engine)
        assert (row.tool_id, row.action_name) == ("t1", "bump")
        assert shelf.taken == []


async def test_behaviour_016_names_of_another_toolset_lead_nowhere(sqlite_url: str) -> None:
    """Prepared for A, then for B: within B, A's names resolve to nothing."""
    tools = [tool_of(Shelf().take, name=name, action=f"do_{name}") for name in ("one", "two")]
    first = CallContext(user_id="u", message_id="m", tool_ids=("t1",))
    second = CallContext(user_id="u", message_id="m", tool_ids=("t2",))
    async with staged_engine(sqlite_url, *tools) as engine:
        assert list((await engine.prepare_tools_for_llm(first)).names) == ["do_one"]
        later = await engine.prepare_tools_for_llm(second)
        assert list(later.names) == ["do_two"]
        for prepared in (None, later):
            failed = await outcome_of(engine, call(name="do_one", call_id=f"c{prepared is None}"), second, prepared)
            assert isinstance(failed, Failed)
            assert failed.kind == "unknown_tool"


@pytest.mark.parametrize("size", [400_000, 401_000])
async def test_behaviour_123_the_model_and_read_result_get_the_whole(journal_url: str, size: int) -> None:
    async def long() -> str:
        return "0123456789" * (size // 10)

    reader = ToolRow(id="t9", name="read_result", user_id="u")
    async with staged_engine(journal_url, tool_of(long), rows=[ROW, reader]) as engine:
        (message,) = await answered(engine, [call({})], "openai")
        assert message["content"] == "0123456789" * (size // 10)
        arguments = {"key": "m:c1", "offset": size - 15, "limit": 100}
        piece = await outcome_of(engine, call(arguments, name="read_result", call_id="r"))
        assert isinstance(piece, Executed)
        assert (piece.result["text"], piece.result["total"]) == ("567890123456789", size)


async def test_case_truncate_02_rows_cut_for_the_model_are_whole_in_the_journal(journal_url: str) -> None:
    rows = [{"id": number, "note": 'a "quoted" line\n' * 12} for number in range(5000)]

    async def table() -> list[dict[str, Any]]:
        return rows

    async with staged(journal_url, table) as engine:
        await outcome_of(engine, call({}))
        read = partial(engine.tool_results, "m", user_id="u", limit=20_000)
        (message,) = await read()
        notice = json.loads(message["content"])
        assert len(message["content"]) <= 20_000
        assert (notice["truncated"], notice["read"]) == (True, "m:c1")
        assert notice["total"] > 1_000_000
        assert await read() == [message]
        kept = (await stream_of(engine))[-1]
        assert isinstance(kept, Executed)
        assert kept.result_digest is not None
        assert (await engine.log.whole(kept, user_id="u")).result == rows
        (whole,) = await engine.tool_results("m", user_id="u")
        assert json.loads(whole["content"]) == rows


async def test_case_parse_10_parallel_calls_of_one_id_go_back_under_ids_of_their_own(journal_url: str) -> None:
    """All of one response, side by side, in every family that has ids."""
    calls = [call({"bay": bay}, call_id="k1") for bay in (1, 2)]

    async def kilos(bay: int) -> int:
        return bay * 11

    async with staged(journal_url, kilos, parameters=BAY) as engine:
        async with engine.execute_all(calls, CONTEXT) as events:
            ended = [event async for event in events]
        assert {event.key for event in ended if isinstance(event, Executed)} == {"m:k1", "m:k1#2"}
        told = await engine.tool_results("m", user_id="u", calls=calls)
        assert [(each["tool_call_id"], each["content"]) for each in told] == [("k1", "11"), ("k1#2", "22")]
        assert [each.id for each in unique_ids(calls)] == ["k1", "k1#2"]
        await proved(engine)


async def test_case_parse_13_two_nested_calls_in_one_name_are_no_calls(sqlite_url: str) -> None:
    """``multi_tool_use.parallel``: one recoverable error that lists what can be called; neither of the two runs."""
    shelf = Shelf()
    uses = [{"recipient_name": "functions.bump", "parameters": {"n": number}} for number in (1, 2)]
    async with staged(sqlite_url, shelf.take, parameters=NUMBER) as engine:
        for name in ("multi_tool_use.parallel", "bump ", "functions.bump"):
            failed = await outcome_of(engine, call({"tool_uses": uses}, name=name, call_id=name))
            assert isinstance(failed, Failed)
            assert failed.kind == "unknown_tool"
            assert "Callable tools: bump" in failed.message
        assert shelf.taken == []


async def test_case_truncate_03_a_huge_result_goes_through_while_others_go_on(sqlite_url: str) -> None:
    """Ten megabytes: stored apart, whole for the model on request, and the loop runs on meanwhile."""
    whole = "\u00e9" * 5_000_000
    beats: list[float] = []

    async def huge() -> str:
        return whole

    async def beat() -> None:
        while True:
            await anyio.sleep(0.001)
            beats.append(anyio.current_time())

    async with staged(sqlite_url, huge) as engine:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(beat)
            executed = await outcome_of(engine, call({}))
            tasks.cancel_scope.cancel()
        assert isinstance(executed, Executed)
        assert len(beats) > 2, "the loop ran on"
        kept = (await stream_of(engine))[-1]
        assert isinstance(kept, Executed)
        assert (len(kept.result), kept.result_length) == (400_000, 5_000_000)
        assert kept.result_digest is not None
        assert len(kept.preview) == 2003
        (message,) = await engine.tool_results("m", user_id="u")
        assert message["content"] == whole
        (cut,) = await engine.tool_results("m", user_id="u", limit=2000)
        assert len(cut["content"]) <= 2000
        assert json.loads(cut["content"])["total"] == 5_000_000
        assert isinstance(await outcome_of(engine, call({}, call_id="c2")), Executed)
        await proved(engine)


async def test_long_code_and_unicode_arrive_as_they_were_sent(journal_url: str) -> None:
    shelf = Shelf()
    async with staged(journal_url, shelf.take, parameters=ANYTHING) as engine:
        assert not isinstance(await outcome_of(engine, call(json.dumps({"code": LONG_CODE}))), Failed | Paused)
        assert shelf.taken == [{"code": LONG_CODE}]
