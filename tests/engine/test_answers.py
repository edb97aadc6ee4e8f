"""``tool_results``: every call of a turn is answered, in call order, honestly (DESIGN 9, issue B 4)."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from engine import ActionSettings, CallContext, Engine, ToolCall, ToolRow
from engine.call import unique_ids
from events import Executed
from tests.engine.staging import CONTEXT, ROW, call, outcome_of, staged_engine, tool_of

pytestmark = pytest.mark.anyio
FAMILIES = ["openai", "openai.responses", "anthropic", "google"]


async def double(**arguments: Any) -> Any:
    if arguments.get("fail"):
        raise RuntimeError("boom")
    if arguments.get("error"):
        return {"error": "no such bay"}
    return {"twice": arguments.get("n", 0) * 2}


ANY = {"type": "object", "properties": {"n": {"type": "integer"}}}
DOUBLE = tool_of(double, parameters=ANY)
GATED = ToolRow(id="t2", name="counter", user_id="u", actions=[ActionSettings(name="bump", require_approval=True)])


def texts(messages: list[dict[str, Any]], family: str) -> dict[str, str]:
    """Return id to text, whatever the family."""
    match family:
        case "openai":
            return {message["tool_call_id"]: message["content"] for message in messages}
        case "openai.responses":
            return {message["call_id"]: message["output"] for message in messages}
        case "anthropic":
            return {block["tool_use_id"]: block["content"] for block in messages[0]["content"]}
        case _:
            answers = [part["functionResponse"] for part in messages[0]["parts"]]
            return {answer["id"]: json.dumps(answer["response"]) for answer in answers}


@pytest.mark.parametrize("family", FAMILIES)
async def test_every_call_of_a_turn_is_answered_in_call_order(journal_url: str, family: str) -> None:
    calls = [
        call({"n": 2}, call_id="c1"),
        call({"fail": True}, call_id="c2"),
        call({"n": "x"}, call_id="c3"),
        call({"error": True}, call_id="c4"),
        call({}, call_id="c5", name="nowhere"),
        call({"n": 3}, call_id="never"),
    ]
    async with staged_engine(journal_url, DOUBLE, rows=[ROW]) as engine:
        for each in calls[:-1]:
            await outcome_of(engine, each, CONTEXT)
        messages = await engine.tool_results("m", user_id="u", family=family, calls=calls)
        told = texts(messages, family)
        assert list(told) == ["c1", "c2", "c3", "c4", "c5", "never"]
        assert json.loads(told["c1"]) == {"twice": 4}
        assert "boom" in told["c2"]
        assert '"n"' in told["c3"] or "n" in told["c3"]
        assert "no such bay" in told["c4"]
        assert "nowhere" in told["c5"]
        assert "not run" in told["never"]
        of_log = await engine.tool_results("m", user_id="u", family=family)
        assert list(texts(of_log, family)) == ["c1", "c2", "c3", "c4", "c5"]
        assert await engine.tool_results("m", user_id="v", family=family) == []


async def test_what_waits_or_was_denied_never_looks_like_a_success(journal_url: str) -> None:
    async with staged_engine(journal_url, DOUBLE, rows=[GATED]) as engine:
        await outcome_of(engine, call({"n": 1}, call_id="c1"), CONTEXT)
        headless = CallContext(user_id="u", message_id="m", headless=True)
        await outcome_of(engine, call({"n": 1}, call_id="c2"), headless)
        openai = texts(await engine.tool_results("m", user_id="u"), "openai")
        assert "approval" in openai["c1"]
        assert "not run" in openai["c2"]
        anthropic = (await engine.tool_results("m", user_id="u", family="anthropic"))[0]["content"]
        assert anthropic[0]["is_error"] is True
        assert "is_error" not in anthropic[1]
        google = (await engine.tool_results("m", user_id="u", family="google"))[0]["parts"]
        assert set(google[0]["functionResponse"]["response"]) == {"error"}
        assert set(google[1]["functionResponse"]["response"]) == {"denied"}


async def test_moving_on_closes_what_waits(journal_url: str) -> None:
    context = CallContext(
        user_id="u", message_id="m", client_tools=({"name": "browse", "parameters": {"type": "object"}},)
    )
    async with staged_engine(journal_url, DOUBLE, rows=[GATED]) as engine:
        await outcome_of(engine, call({"n": 1}, call_id="c1"), context)
        await outcome_of(engine, call({}, call_id="c2", name="browse"), context)
        told = texts(await engine.tool_results("m", user_id="u", close_open=True), "openai")
        first = await engine.attempt("m:c1", user_id="u")
        second = await engine.attempt("m:c2", user_id="u")
        assert first is not None
        assert second is not None
        assert first.status == "denied"
        assert (first.error or "").startswith("superseded: ")
        assert second.status == "failed"
        assert "may have had its effect" in told["c2"]


async def test_case_parse_10_two_calls_of_one_id_have_their_own_answers(journal_url: str) -> None:
    calls = [call({"n": 1}, call_id="k1"), call({"n": 2}, call_id="k1")]
    async with staged_engine(journal_url, DOUBLE, rows=[ROW]) as engine:
        for each in calls:
            await outcome_of(engine, each, CONTEXT)
        for given in (None, calls):
            told = texts(await engine.tool_results("m", user_id="u", calls=given), "openai")
            assert list(told) == [each.id for each in unique_ids(calls)]
            assert [json.loads(text) for text in told.values()] == [{"twice": 2}, {"twice": 4}]


async def test_behaviour_095_a_call_without_an_id_is_answered_under_the_generated_one(journal_url: str) -> None:
    nameless = ToolCall(id=None, name="bump", arguments={"n": 4})
    async with staged_engine(journal_url, DOUBLE, rows=[ROW]) as engine:
        event = await outcome_of(engine, nameless, CONTEXT)
        told = texts(await engine.tool_results("m", user_id="u", calls=[nameless]), "openai")
        assert told == {event.call_id: '{"twice":8}'}


async def test_behaviour_046_a_thought_signature_survives_to_the_results(journal_url: str) -> None:
    signed = call({"n": 1}, call_id="c1", extra={"thoughtSignature": "c2ln"})
    async with staged_engine(journal_url, DOUBLE, rows=[ROW]) as engine:
        await outcome_of(engine, signed, CONTEXT)
        (message,) = await engine.tool_results("m", user_id="u", family="google")
        assert message["parts"][0]["thoughtSignature"] == "c2ln"


async def test_a_long_result_is_cut_only_on_request_and_read_on_by_its_key(journal_url: str) -> None:
    text = "0123456789" * 50_000

    async def long() -> str:
        return text

    reader = ToolRow(id="t9", name="read_result", user_id="u")
    async with staged_engine(journal_url, tool_of(long), rows=[ROW, reader]) as engine:
        await outcome_of(engine, call({}, call_id="c1"), CONTEXT)
        assert texts(await engine.tool_results("m", user_id="u"), "openai") == {"c1": text}
        told = texts(await engine.tool_results("m", user_id="u", limit=1000), "openai")
        notice = json.loads(told["c1"])
        assert len(told["c1"]) <= 1000
        assert notice["total"] == 500_000
        got = ""
        offset: int | None = 0
        while offset is not None:
            arguments = {"key": notice["read"], "offset": offset, "limit": 100_000}
            piece = await outcome_of(engine, call(arguments, call_id=f"r{offset}", name="read_result"), CONTEXT)
            assert isinstance(piece, Executed)
            got += piece.result["text"]
            offset = piece.result["next"]
        assert got == text
        other = CallContext(user_id="v", message_id="m", tool_ids=("t9",))
        foreign = await outcome_of(engine, call({"key": notice["read"]}, call_id="x", name="read_result"), other)
        assert isinstance(foreign, Executed)
        assert foreign.status == "error"


async def test_a_turn_that_broke_off_is_answered_by_another_engine(journal_url: str) -> None:
    started = anyio.Event()

    async def hang() -> None:
        started.set()
        await anyio.sleep_forever()

    async with staged_engine(journal_url, tool_of(hang), rows=[ROW]) as engine, anyio.create_task_group() as tasks:
        tasks.start_soon(outcome_of, engine, call({}, call_id="c1"), CONTEXT)
        await started.wait()
        async with Engine.open(journal_url) as other:
            told = texts(await other.tool_results("m", user_id="u"), "openai")
            assert "may have had its effect" in told["c1"]
        tasks.cancel_scope.cancel()
