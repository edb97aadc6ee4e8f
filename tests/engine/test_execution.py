"""``execute``: the events it yields, what the tool receives, what is recorded (BEHAVIOUR 5)."""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import pytest

from engine import ActionSettings, CallContext, Engine, Tool, ToolContext, ToolRow
from events import Executed, Failed, Proposed, to_wire
from projections import verify
from tests.engine.staging import (
    CONTEXT,
    ROW,
    Echo,
    bare,
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

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}}


async def answer() -> str:
    return "Tool result"


async def test_behaviour_070_success_is_two_events(journal_url: str) -> None:
    async with staged(journal_url, answer) as engine:
        proposed, executed = await events_of(engine, call())
        assert isinstance(proposed, Proposed)
        assert isinstance(executed, Executed)
        assert (proposed.call_id, executed.call_id) == ("c1", "c1")
        assert (executed.status, executed.result) == ("completed", "Tool result")
        assert (proposed.position, executed.position) == (1, 2)
        assert await stream_of(engine) == [proposed, executed]
        await proved(engine)


async def test_behaviour_072_the_wire_form_is_light_and_the_log_keeps_all(journal_url: str) -> None:
    async def echo(n: int) -> dict[str, Any]:
        return {"n": n}

    async with staged(journal_url, echo, parameters=NUMBER) as engine:
        executed = await outcome_of(engine, call({"n": 1}))
        assert isinstance(executed, Executed)
        assert (executed.result, executed.preview, executed.status) == ({"n": 1}, '{"n":1}', "completed")
        assert executed.resolved == {"parameters": {"n": 1}}
        wire = to_wire(executed)
        assert "resolved" not in wire
        assert wire["result"] == '{"n":1}'
        assert (await stream_of(engine))[-1] == executed


async def test_behaviour_073_objects_stay_objects(sqlite_url: str) -> None:
    async def give() -> dict[str, int]:
        return {"a": 1}

    async with staged(sqlite_url, give) as engine:
        executed = await outcome_of(engine, call())
        assert isinstance(executed, Executed)
        assert executed.result == {"a": 1}
        assert executed.preview == '{"a":1}'
        assert (await row_of(engine)).result == {"a": 1}


def echo_row(**settings: Any) -> ToolRow:
    return ToolRow(id="t1", name="echo", user_id="u", actions=[ActionSettings(name="echo", **settings)])


async def test_behaviour_075_a_preset_reaches_the_tool_and_not_the_journal(sqlite_url: str) -> None:
    async with staged_engine(sqlite_url, Echo, rows=[echo_row(presets={"a": "default_val"})]) as engine:
        proposed, executed = await events_of(engine, call({}, name="echo"))
        assert isinstance(proposed, Proposed)
        assert isinstance(executed, Executed)
        assert executed.result == {"a": "default_val"}
        assert proposed.arguments == {}
        assert (await row_of(engine)).arguments == {}


async def test_behaviour_076_zero_false_and_empty_presets_count(sqlite_url: str) -> None:
    presets = {"zero": 0, "no": False, "empty": ""}
    async with staged_engine(sqlite_url, Echo, rows=[echo_row(presets=presets)]) as engine:
        executed = await outcome_of(engine, call({}, name="echo"))
        assert isinstance(executed, Executed)
        assert executed.result == presets


async def test_behaviour_079_a_pinned_parameter_cannot_be_sent(sqlite_url: str) -> None:
    received: list[Any] = []

    async def take(**kwargs: Any) -> str:
        received.append(kwargs)
        return "ran"

    schema = {"type": "object", "properties": {"mode": {"type": "string"}}}
    row = ToolRow(id="t1", name="counter", user_id="u", actions=[ActionSettings(name="bump", pinned={"mode": "safe"})])
    async with staged_engine(sqlite_url, tool_of(take, parameters=schema), rows=[row]) as engine:
        refused = await outcome_of(engine, call({"mode": "evil"}))
        assert isinstance(refused, Failed)
        assert refused.kind == "invalid_arguments"
        assert "mode" in refused.message
        assert received == []
        allowed = await outcome_of(engine, call({}, call_id="c2"))
        assert isinstance(allowed, Executed)
        assert received == [{"mode": "safe"}]
        await proved(engine)


async def test_behaviour_094_one_failure_leaves_its_siblings_alone(sqlite_url: str) -> None:
    async def boom() -> None:
        raise ValueError("boom")

    async with staged_engine(
        sqlite_url, tool_of(boom, name="a", action="a"), tool_of(answer, name="b", action="b")
    ) as e:
        failed = await outcome_of(e, call(name="a", call_id="c1"))
        fine = await outcome_of(e, call(name="b", call_id="c2"))
        assert isinstance(failed, Failed)
        assert (failed.kind, failed.exception_type, failed.call_id) == ("exception", "ValueError", "c1")
        assert "boom" in failed.message
        assert isinstance(fine, Executed)
        assert (await row_of(e)).error == failed.message
        await proved(e)


async def test_an_exception_is_raised_again_only_on_request(sqlite_url: str) -> None:
    async def boom() -> None:
        raise LookupError("boom")

    async with staged(sqlite_url, boom) as engine:
        seen: list[Any] = []

        async def consume() -> None:
            async with aclosing(engine.execute(call(), CONTEXT, reraise=True)) as stream:
                async for event in stream:
                    seen.append(event)

        with pytest.raises(LookupError, match="boom"):
            await consume()
        assert [type(event) for event in seen] == [Proposed, Failed]
        assert await stream_of(engine) == seen


@pytest.mark.parametrize("identity", ["", None])
async def test_behaviour_095_a_call_without_id_gets_one(sqlite_url: str, identity: str | None) -> None:
    async with staged(sqlite_url, answer) as engine:
        first = await events_of(engine, call(call_id=identity))
        second = await events_of(engine, call(call_id=identity))
        ids = {event.call_id for event in first}
        assert len(ids) == 1
        assert ids.isdisjoint({event.call_id for event in second})
        generated = first[0].call_id
        assert generated
        assert (await row_of(engine, f"m:{generated}")).call_id == generated


class Maker(Echo):
    """Names what it made."""

    name = "maker"
    id_given: Any = None
    files_given: Any = None

    def get_artifact_id(self, action_name: str, **kwargs: Any) -> Any:
        return self._given(self.id_given)

    def get_artifacts(self, action_name: str, **kwargs: Any) -> Any:
        return self._given(self.files_given)

    def _given(self, given: Any) -> Any:
        if isinstance(given, BaseException):
            raise given
        return given


def maker(**given: Any) -> type[Tool]:
    return type("Made", (Maker,), {"name": "maker", **given})


@pytest.mark.parametrize(
    ("given", "kept"), [(" a1 ", "a1"), ("", None), (ValueError("no"), None), (SystemExit(3), None)]
)
async def test_behaviour_096_105_artifact_ids(journal_url: str, given: Any, kept: str | None) -> None:
    async with staged_engine(journal_url, maker(id_given=given)) as engine:
        executed = await outcome_of(engine, call({"a": 1}, name="echo"))
        assert isinstance(executed, Executed)
        assert (executed.status, executed.result) == ("completed", {"a": 1})
        assert executed.artifact_id == kept
        row = await row_of(engine)
        assert (row.artifact_id, row.result) == (kept, {"a": 1})


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([{"id": " f1 ", "filename": "x", "extra": 1}, {"filename": "y"}, "z"], [("f1", "x", None)]),
        ([], []),
        (ValueError("no"), []),
    ],
)
async def test_behaviour_097_files(sqlite_url: str, given: Any, kept: list[Any]) -> None:
    async with staged_engine(sqlite_url, maker(files_given=given)) as engine:
        executed = await outcome_of(engine, call({"a": 1}, name="echo"))
        assert isinstance(executed, Executed)
        assert executed.result == {"a": 1}
        assert [(each.id, each.filename, each.ref) for each in executed.artifacts] == kept


async def test_behaviour_100_without_a_message_it_is_confirmed_at_once(journal_url: str) -> None:
    async with staged(journal_url, answer) as engine:
        events = await events_of(engine, call(), bare)
        assert [type(event) for event in events] == [Proposed, Executed]
        row = await row_of(engine, "c1")
        assert (row.status, row.result, row.error, row.message_id) == ("confirmed", "Tool result", None, None)
        await proved(engine)


async def test_behaviour_101_102_the_key_carries_the_message(journal_url: str) -> None:
    identity = "functions.create_artifact:0"
    async with staged(journal_url, answer) as engine:
        for message in ("M", "N"):
            await events_of(engine, call(call_id=identity), CallContext(user_id="u", message_id=message))
            row = await row_of(engine, f"{message}:{identity}")
            assert (row.status, row.message_id, row.call_id) == ("executed", message, identity)
        assert await engine.attempt(identity, user_id="u") is None


async def test_a_run_takes_the_place_of_a_missing_message(sqlite_url: str) -> None:
    async with staged(sqlite_url, answer) as engine:
        await events_of(engine, call(), CallContext(user_id="u", run_id="r"))
        row = await row_of(engine, "r:c1")
        assert (row.status, row.run_id, row.message_id) == ("confirmed", "r", None)


async def test_behaviour_106_ids_of_any_text_are_kept(sqlite_url: str) -> None:
    identity = "row/7 ü:#~d1"
    context = CallContext(user_id="u:1", message_id="m", agent_id="agent é #1", conversation_id="c~d1")
    row = ToolRow(id=identity, name="counter", user_id="u:1")
    async with staged_engine(sqlite_url, tool_of(answer), rows=[row]) as engine:
        await events_of(engine, call(), context)
        found = await row_of(engine, user_id="u:1")
        assert (found.tool_id, found.agent_id, found.conversation_id) == (identity, "agent é #1", "c~d1")


@pytest.mark.parametrize(
    "value",
    [{"status": "error"}, {"error": "x"}, {"status": "ok", "error": "x"}, {"status": "ok", "error": None}, "text"],
)
async def test_behaviour_127_the_status_is_read_in_band(sqlite_url: str, value: Any) -> None:
    async def give() -> Any:
        return value

    async with staged(sqlite_url, give) as engine:
        executed = await outcome_of(engine, call())
        assert isinstance(executed, Executed)
        bad = isinstance(value, dict) and (value.get("status") == "error" or bool(value.get("error")))
        assert executed.status == ("error" if bad else "completed")
        assert (await row_of(engine)).result_status == executed.status


async def test_a_tool_gets_its_context(sqlite_url: str) -> None:
    seen: list[ToolContext] = []

    async def look(context: ToolContext) -> str:
        seen.append(context)
        context.progress(1, None, "half-way")
        return context.idempotency_key

    context = CallContext(user_id="u", message_id="m", conversation_id="k", run_id="r", agent_id="a", tool_ids=("t1",))
    async with staged(sqlite_url, look, wants_context=True) as engine:
        executed = await outcome_of(engine, call(), context)
        assert isinstance(executed, Executed)
        assert executed.result == "m:c1"
        (given,) = seen
        assert (given.user_id, given.message_id, given.call_id) == ("u", "m", "c1")
        assert (given.conversation_id, given.run_id, given.agent_id) == ("k", "r", "a")
        assert (given.store.tenant, given.store.tool_id) == ("uu", "t1")


async def test_a_tool_that_cannot_be_made_is_a_failed_load(sqlite_url: str) -> None:
    class Broken(Echo):
        name = "broken"

        def __init__(self, config: dict[str, Any], scope: Any) -> None:
            super().__init__(config, scope)
            if scope.user_id is not None and config.get("bad"):
                raise RuntimeError("no such host")

        user_scoped = True

    rows = [ToolRow(id="t1", name="broken", config={"bad": True})]
    async with staged_engine(sqlite_url, Broken, rows=rows) as engine:
        # Metadata is asked of an instance for nobody.
        failed = await outcome_of(engine, call({}, name="echo"))
        assert isinstance(failed, Failed)
        assert failed.kind == "load"
        assert "no such host" in failed.message
        nobody = await outcome_of(engine, call({}, name="echo"), CallContext(message_id="m"))
        assert isinstance(nobody, Failed)
        assert nobody.kind == "load"
        await proved(engine)


async def test_another_users_row_is_not_offered_and_nobodys_is(sqlite_url: str) -> None:
    rows = [ROW, ToolRow(id="t2", name="other", user_id="v"), ToolRow(id="t3", name="third")]
    tools = [
        tool_of(answer),
        tool_of(answer, name="other", action="other"),
        tool_of(answer, name="third", action="third"),
    ]
    async with staged_engine(sqlite_url, *tools, rows=rows) as engine:
        names = (await engine.prepare_tools_for_llm(CONTEXT)).names
        assert {"bump", "third"} <= set(names)
        assert "other" not in names
        hidden = await outcome_of(engine, call(name="other"))
        assert isinstance(hidden, Failed)


async def test_attempts_of_other_tenants_are_not_there(journal_url: str) -> None:
    async with staged(journal_url, answer) as engine:
        await events_of(engine, call())
        for other in (None, "", "U", "u "):
            assert await engine.attempt("m:c1", user_id=other) is None
        assert await engine.attempt("m:nothing", user_id="u") is None


async def test_an_engine_says_what_it_is(sqlite_url: str) -> None:
    async with staged(sqlite_url, answer) as engine:
        await events_of(engine, call())
        statistics = engine.statistics()
        assert statistics.log.position == 2
        assert statistics.worker.startswith("worker-")
        assert statistics.worker in repr(engine)
        assert isinstance(engine, Engine)


async def test_an_engine_that_closes_leaves_its_log_sealed(journal_url: str) -> None:
    async def bump() -> int:
        return 1

    async with staged(journal_url, bump) as engine:
        await events_of(engine, call())
        head = await engine.log.head()
    async with staged(journal_url, bump) as engine:
        report = await verify(engine.log)
        assert report.ok
        assert report.sealed == head
