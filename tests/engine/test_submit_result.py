"""``submit_result``: a client's result becomes the outcome, an answer lets a tool go on; each exactly once."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import pytest

from engine import CallContext, Engine, InputRequired, Limits, ResultGuard, Settings, ToolContext, ToolResult
from engine.guards import Redact, Withhold
from events import Approved, Executed, Failed, LateOutcome, NotFound, Paused, Proposed, Refused, Resumed, to_wire
from tests.engine.gating import APPROVED_FIRST, NUMBER, Outcome, paused, resumed, submitted
from tests.engine.staging import (
    CONTEXT,
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

CLIENT = CallContext(user_id="u", message_id="m", client_tools=({"name": "write_file", "parameters": {}},))
approve = partial(Engine.decide, approve=True, by="alice", user_id="u")


def write(call_id: str = "c1", **arguments: Any) -> Any:
    return call(arguments, call_id=call_id, name="write_file")


async def test_a_clients_result_is_the_outcome(journal_url: str) -> None:
    async with Engine.open(journal_url) as engine:
        await outcome_of(engine, write(path="a"), CLIENT)
        executed = await submitted(engine, {"wrote": "a\x00\x08b"})
        assert isinstance(executed, Executed)
        assert (executed.status, executed.result, executed.call_id) == ("completed", {"wrote": "ab"}, "c1")
        assert executed.resolved == {"parameters": {"path": "a"}}
        assert executed.duration >= 0
        assert [type(event) for event in await stream_of(engine)] == [Proposed, Paused, Executed]
        assert (await stream_of(engine))[-1] == executed
        assert (await row_of(engine)).status == "executed"
        assert (await events_of(engine, write(path="a"), CLIENT))[1] == executed
        assert await engine.confirm("m", user_id="u") == 1
        await proved(engine)


async def test_behaviour_059_a_clients_error_is_an_error(journal_url: str) -> None:
    async with Engine.open(journal_url) as engine:
        await outcome_of(engine, write(), CLIENT)
        executed = await submitted(engine, {"error": "x"})
        assert isinstance(executed, Executed)
        assert executed.status == "error"
        (answer,) = await engine.tool_results("m", user_id="u")
        assert answer["content"] == '{"error":"x"}'
        await outcome_of(engine, write("c2"), CLIENT)
        long = await submitted(engine, {"error": "y" * 3000}, "m:c2")
        assert isinstance(long, Executed)
        assert (len(long.preview), long.preview[-3:]) == (2003, "...")
        assert to_wire(long)["result"] == long.preview
        await proved(engine)


async def test_a_client_may_say_its_status_outright(sqlite_url: str) -> None:
    async with Engine.open(sqlite_url) as engine:
        await outcome_of(engine, write(), CLIENT)
        executed = await submitted(engine, ToolResult("denied by the disk", status="error"))
        assert isinstance(executed, Executed)
        assert (executed.status, executed.result) == ("error", "denied by the disk")


class Careful(ResultGuard):
    name = "careful"

    def inspect(self, text: str, call: Any, /) -> Any:
        return Withhold("named") if "withhold" in text else Redact(text.replace("s3cret", "***"))


async def test_guards_see_a_clients_result(journal_url: str) -> None:
    async with Engine.open(journal_url, guards=[Careful()]) as engine:
        for number, (said, kept) in enumerate([("a s3cret", "a ***"), ("withhold it", "The result was withheld")]):
            await outcome_of(engine, write(f"c{number}"), CLIENT)
            executed = await submitted(engine, said, f"m:c{number}")
            assert isinstance(executed, Executed)
            assert executed.result.startswith(kept)
            assert executed.guard is not None
            assert executed.guard.startswith("careful: ")
        assert all("s3cret" not in repr(event) for event in await stream_of(engine, "m:c0"))


async def test_without_a_message_it_is_confirmed_at_once(sqlite_url: str) -> None:
    context = CallContext(user_id="u", run_id="r", client_tools=({"name": "write_file"},))
    async with Engine.open(sqlite_url) as engine:
        await outcome_of(engine, write(), context)
        assert isinstance(await submitted(engine, "ok", "r:c1"), Executed)
        assert (await row_of(engine, "r:c1")).status == "confirmed"


async def test_of_many_results_one_counts(journal_url: str) -> None:
    told: list[Outcome] = []

    async def submit(engine: Engine, number: int) -> None:
        with suppress(Refused):
            told.append(await submitted(engine, number))

    async with Engine.open(journal_url) as one, Engine.open(journal_url) as two:
        await outcome_of(one, write(), CLIENT)
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(submit, (one, two)[number % 2], number)
        (executed,) = told
        assert (await stream_of(one))[2:] == [executed]
        with pytest.raises(Refused, match="executed"):
            await submitted(one, "again")
        await proved(one)


async def test_only_what_waits_for_a_result_takes_one(journal_url: str) -> None:
    async def fine() -> str:
        return "fine"

    async with staged_engine(
        journal_url, tool_of(fine), tool_of(fine, name="gated", action="gated", metadata=APPROVED_FIRST)
    ) as engine:
        await outcome_of(engine, call())
        await outcome_of(engine, call(name="gated", call_id="c2"))
        with pytest.raises(Refused, match="it is executed"):
            await submitted(engine, "x")
        with pytest.raises(Refused, match="waits for a decision"):
            await submitted(engine, "x", "m:c2")
        await approve(engine, "m:c2")
        with pytest.raises(Refused, match="approved"):
            await submitted(engine, "x", "m:c2")
        await outcome_of(engine, write("c3"), CLIENT)
        for other in (None, "v"):
            for key in ("m:c3", "m:nothing"):
                with pytest.raises(NotFound, match="there is no call"):
                    await submitted(engine, "x", key, CallContext(user_id=other))
        assert (await row_of(engine, "m:c3")).gate == "paused"
        assert not any(isinstance(event, LateOutcome) for event in await stream_of(engine))
        await proved(engine)


async def test_a_result_that_comes_too_late_is_kept(journal_url: str) -> None:
    """What ran never looks as if it had not: the conversation went on, and then the client answered."""
    async with Engine.open(journal_url) as engine:
        await outcome_of(engine, write(), CLIENT)
        await engine.tool_results("m", user_id="u", close_open=True)
        for _ in range(2):
            with pytest.raises(Refused, match="failed"):
                await submitted(engine, "written after all")
        *_, failed, late = await stream_of(engine)
        assert isinstance(failed, Failed)
        assert isinstance(late, LateOutcome)
        assert isinstance(late.outcome, Executed)
        assert late.outcome.result == "written after all"
        row = await row_of(engine)
        assert (row.status, row.late) == ("failed", True)
        await proved(engine)


class Asker:
    """A tool that needs a name, and then a second one."""

    def __init__(self, needs: int = 1) -> None:
        self.needs = needs
        self.seen: list[ToolContext] = []

    async def run(self, context: ToolContext, n: int = 0) -> Any:
        self.seen.append(context)
        if len(self.seen) <= self.needs:
            return InputRequired({"question": f"which {n}?", "state": len(self.seen)}, "a name is needed")
        return {"answer": context.answer, "request": context.request, "n": n}


async def test_a_tool_that_asks_waits_and_goes_on_with_the_answer(journal_url: str) -> None:
    asker = Asker()
    async with staged(journal_url, asker.run, wants_context=True, parameters=NUMBER) as engine:
        pause = await outcome_of(engine, call({"n": 4}))
        assert isinstance(pause, Paused)
        assert (pause.pause_type, pause.reason, pause.arguments) == ("requires_input", "a name is needed", {"n": 4})
        assert pause.request == {"question": "which 4?", "state": 1}
        assert pause.expires_at is not None
        assert "waits for input" in (await engine.tool_results("m", user_id="u"))[0]["content"]
    async with staged(journal_url, asker.run, wants_context=True, parameters=NUMBER) as engine:
        executed = await submitted(engine, {"name": "Ann"})
        assert isinstance(executed, Executed)
        assert executed.result == {"answer": {"name": "Ann"}, "request": pause.request, "n": 4}
        proposed, _, claim, _ = await stream_of(engine)
        assert isinstance(claim, Resumed)
        assert claim.answer == {"name": "Ann"}
        assert claim.key == proposed.key
        assert [context.idempotency_key for context in asker.seen] == ["m:c1", "m:c1"]
        with pytest.raises(Refused, match="executed"):
            await submitted(engine, "again")
        await proved(engine)


async def test_a_tool_may_ask_twice_and_after_an_approval(journal_url: str) -> None:
    asker = Asker(needs=2)
    async with staged(journal_url, asker.run, wants_context=True, parameters=NUMBER, metadata=APPROVED_FIRST) as engine:
        await paused(engine, call({"n": 1}))
        await approve(engine, "m:c1", arguments={"n": 2})
        first = await resumed(engine)
        assert isinstance(first, Paused)
        assert (first.pause_type, first.request["question"]) == ("requires_input", "which 2?")
        with pytest.raises(Refused, match="submit_result"):
            await resumed(engine)
        second = await submitted(engine, None)
        assert isinstance(second, Paused)
        assert second.request["state"] == 2
        executed = await submitted(engine, "last")
        assert isinstance(executed, Executed)
        assert (executed.result["answer"], executed.result["n"]) == ("last", 2)
        kinds = [type(event) for event in await stream_of(engine)]
        assert kinds == [Proposed, Paused, Approved, Resumed, Paused, Resumed, Paused, Resumed, Executed]
        await proved(engine)


async def test_one_of_many_answers_is_taken(journal_url: str) -> None:
    asker = Asker()
    told: list[Outcome] = []

    async def submit(engine: Engine, number: int) -> None:
        with suppress(Refused):
            told.append(await submitted(engine, number))

    tool = tool_of(asker.run, wants_context=True, parameters=NUMBER)
    async with staged_engine(journal_url, tool) as one, staged_engine(journal_url, tool) as two:
        await outcome_of(one, call())
        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(submit, (one, two)[number % 2], number)
        assert [type(event) for event in told] == [Executed]
        assert len(asker.seen) == 2
        await proved(one)


async def test_a_tool_that_has_changed_does_not_go_on(journal_url: str) -> None:
    asker = Asker(needs=2)
    async with staged(journal_url, asker.run, wants_context=True, parameters=NUMBER) as engine:
        await outcome_of(engine, call())
        await outcome_of(engine, call(call_id="c2"))
    stricter = {**NUMBER, "required": ["n"]}
    async with staged(journal_url, asker.run, wants_context=True, parameters=stricter) as engine:
        failed = await submitted(engine, "x")
        assert isinstance(failed, Failed)
        assert "definition has changed" in failed.message
        await proved(engine)
    async with Engine.open(journal_url) as engine:
        failed = await submitted(engine, "x", "m:c2")
        assert isinstance(failed, Failed)
        assert failed.kind == "unknown_tool"
        assert len(asker.seen) == 2
        await proved(engine)


async def test_who_leaves_after_a_durable_pause_leaves_it_waiting(sqlite_url: str) -> None:
    asker = Asker()
    async with staged(sqlite_url, asker.run, wants_context=True, parameters=NUMBER) as engine:
        stream = engine.execute(call(), CONTEXT)
        await anext(stream)
        assert isinstance(await anext(stream), Paused)
        await stream.aclose()
        assert (await row_of(engine)).pause_type == "requires_input"


async def test_without_a_limit_a_client_has_all_the_time(sqlite_url: str) -> None:
    async with Engine.open(sqlite_url, settings=Settings(limits=Limits(answer_within=None))) as engine:
        pause = await outcome_of(engine, write(), CLIENT)
        assert isinstance(pause, Paused)
        assert pause.expires_at is None
