"""What a rule's verdict does to a call, and what it never does; the rule that decided is in the event and the row."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from engine import EVERYONE, ActionSettings, CallContext, Rule, ToolRow
from events import Denied, Executed, Failed, Paused
from tests.engine.gating import APPROVED_FIRST, Device, Executor, Shelf, command, device_row, headless, paused, resumed
from tests.engine.staging import (
    call,
    outcome_of,
    proved,
    row_of,
    staged,
    staged_engine,
    tool_of,
)
from tests.engine.test_duplicates import Scale, declare_dead, run_beside, scale_tool, weigh
from tests.engine.test_rules import DENY, answer, never

__all__ = ()

pytestmark = pytest.mark.anyio


async def test_a_denying_rule_is_in_the_event_and_the_row(journal_url: str) -> None:
    async with staged(journal_url, never) as engine:
        await engine.rules.add(DENY, user_id="u")
        denied = await outcome_of(engine, call())
        assert isinstance(denied, Denied)
        assert (denied.reason, denied.rule) == ("policy", "rule:no@1")
        assert "not on Fridays" in denied.message
        row = await row_of(engine)
        assert (row.status, row.rule) == ("denied", "rule:no@1")
        (message,) = await engine.tool_results("m", user_id="u")
        assert "not on Fridays" in message["content"]
        await engine.rules.replace("no", DENY, user_id="u")
        again = await outcome_of(engine, call(call_id="c2"))
        assert isinstance(again, Denied)
        assert again.rule == "rule:no@2"
        await proved(engine)


async def test_an_asking_rule_pauses_and_what_was_approved_runs(journal_url: str) -> None:
    shelf = Shelf()
    async with staged(journal_url, shelf.take) as engine:
        await engine.rules.add(Rule(verdict="ask", id="look", effect="write", message="have a look"), user_id=EVERYONE)
        pause = await paused(engine, call({"n": 1}))
        assert (pause.rule, pause.reason) == ("rule:look@1", "have a look")
        assert (await row_of(engine)).rule == "rule:look@1"
        await engine.decide("m:c1", approve=True, by="alice", user_id="u")
        assert isinstance(await resumed(engine), Executed)
        assert shelf.taken == [{"n": 1}]
        assert (await row_of(engine)).rule == "rule:look@1"
        await proved(engine)


async def test_an_allowing_rule_answers_the_stored_flag_and_is_in_the_event_and_the_row(journal_url: str) -> None:
    async with staged(journal_url, answer, metadata=APPROVED_FIRST) as engine:
        await engine.rules.add(Rule(verdict="allow", id="fine", predicate="n < `5`"), user_id="u")
        done = await outcome_of(engine, call({"n": 1}))
        assert isinstance(done, Executed)
        assert done.rule == "rule:fine@1"
        assert (await row_of(engine)).rule == "rule:fine@1"
        assert isinstance(await outcome_of(engine, call({"n": 7}, call_id="c2")), Paused)
        unclear = await outcome_of(engine, call({"n": "7"}, call_id="c3"))
        assert isinstance(unclear, Paused)
        assert unclear.rule == "rule:fine@1"
        await proved(engine)


async def test_an_allowing_rule_is_in_the_failure_too(journal_url: str) -> None:
    async def breaks(**kwargs: Any) -> None:
        raise ValueError("broken")

    async with staged(journal_url, breaks, metadata=APPROVED_FIRST) as engine:
        await engine.rules.add(Rule(verdict="allow", id="fine"), user_id="u")
        event = await outcome_of(engine, call())
        assert (event.rule, (await row_of(engine)).rule) == ("rule:fine@1", "rule:fine@1")


async def test_an_allowing_rule_never_opens_what_only_a_person_may(journal_url: str) -> None:
    """A denylist, a tool that cannot be asked, and a client's tool in a run nobody watches."""
    broken = ToolRow(id="8", name="code_executor", user_id="u", config={"says": RuntimeError("boom")})
    client = ({"name": "write_file", "parameters": {"type": "object"}},)
    async with staged_engine(journal_url, Device, Executor, rows=[device_row(), broken]) as engine:
        await engine.rules.add(Rule(verdict="allow", id="all"), user_id=EVERYONE)
        listed = await outcome_of(engine, command("rm -rf /"))
        assert isinstance(listed, Paused)
        assert listed.rule == "denylist"
        unasked = await outcome_of(engine, call(name="run_code", call_id="c2"))
        assert isinstance(unasked, Paused)
        assert unasked.rule == "live_gate_failed"
        assert isinstance(await outcome_of(engine, command("ls", call_id="c3")), Executed)
        alone = CallContext(user_id="u", message_id="h", headless=True, client_tools=client)
        unwatched = await outcome_of(engine, call(name="write_file", call_id="c4"), alone)
        assert isinstance(unwatched, Denied)
        assert unwatched.reason == "headless"
        forced = await outcome_of(engine, command("rm -rf /", call_id="c5"), alone)
        assert isinstance(forced, Denied)
        assert forced.reason == "denylist"
        await proved(engine)


async def test_an_asking_rule_in_a_run_nobody_watches_denies_unless_the_row_is_allowlisted(journal_url: str) -> None:
    async with staged(journal_url, answer) as engine:
        await engine.rules.add(Rule(verdict="ask", id="look"), user_id="u")
        denied = await outcome_of(engine, call(), headless)
        assert isinstance(denied, Denied)
        assert (denied.reason, denied.rule) == ("headless", "rule:look@1")
        listed = CallContext(user_id="u", message_id="h2", headless=True, tool_allowlist=frozenset({"t1"}))
        assert isinstance(await outcome_of(engine, call(), listed), Executed)
        await engine.rules.replace("look", Rule(verdict="ask", predicate="n > `1`"), user_id="u")
        assert isinstance(await outcome_of(engine, call({"n": "x"}, call_id="c2"), listed), Denied)
        await engine.rules.replace("look", Rule(verdict="deny"), user_id="u")
        assert isinstance(await outcome_of(engine, call(call_id="c3"), listed), Denied)
        await proved(engine)


async def test_a_denied_call_is_not_asked_about(journal_url: str) -> None:
    asked: list[str] = []

    class Listening(Executor):
        name = "code_executor"

        async def preview_decision(self, action_name: str, arguments: dict[str, Any]) -> Any:
            asked.append(action_name)
            return False, False

    async with staged_engine(journal_url, Listening, rows=[ToolRow(id="8", name="code_executor", user_id="u")]) as e:
        await e.rules.add(Rule(verdict="deny", id="no"), user_id="u")
        assert isinstance(await outcome_of(e, call(name="run_code")), Denied)
        assert isinstance(await outcome_of(e, call(name="run_code", call_id="c2")), Denied)
    assert asked == []


async def test_predicates_see_what_would_run(journal_url: str) -> None:
    settings = ActionSettings(name="bump", presets={"path": "/etc"}, pinned={"mode": "rw"})
    schema = {"type": "object", "properties": {"path": {"type": "string"}, "mode": {"type": "string"}}}
    rows = [ToolRow(id="t1", name="counter", user_id="u", actions=[settings])]
    async with staged_engine(journal_url, tool_of(answer, parameters=schema), rows=rows) as engine:
        await engine.rules.add(Rule(verdict="deny", predicate="path == '/etc' && mode == 'rw'"), user_id="u")
        assert isinstance(await outcome_of(engine, call({})), Denied)
        assert isinstance(await outcome_of(engine, call({"path": "/tmp"}, call_id="c2")), Executed)


async def test_what_was_approved_and_is_forbidden_since_is_denied(journal_url: str) -> None:
    client = ({"name": "write_file", "parameters": {"type": "object"}},)
    theirs = CallContext(user_id="u", message_id="m", client_tools=client)
    async with staged(journal_url, never, metadata=APPROVED_FIRST) as engine:
        look = await engine.rules.add(Rule(verdict="ask", tool="write_file"), user_id="u")
        await paused(engine, call())
        await paused(engine, call(name="write_file", call_id="c2"), theirs)
        await engine.rules.revoke(look.id, user_id="u")
        for key in ("m:c1", "m:c2"):
            await engine.decide(key, approve=True, by="alice", user_id="u")
        await engine.rules.add(DENY, user_id="u")
        await engine.rules.add(Rule(verdict="deny", id="nor", tool="write_file"), user_id=EVERYONE)
        for key, rule in (("m:c1", "rule:no@1"), ("m:c2", "rule:nor@1")):
            denied = await resumed(engine, key)
            assert isinstance(denied, Denied)
            assert (denied.reason, denied.rule) == ("policy", rule)
        await proved(engine)


async def test_a_dead_workers_idempotent_call_is_not_taken_over_once_a_rule_forbids_it(journal_url: str) -> None:
    """What takes over has written nothing of the call, so it asks for the rules as they are."""
    scale = Scale()
    scale.hold()
    async with (
        staged_engine(journal_url, scale_tool(scale, idempotent=True)) as one,
        staged_engine(journal_url, scale_tool(scale, idempotent=True)) as two,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(run_beside, one, weigh(1), [])
        await scale.held.wait()
        await declare_dead(one)
        await one.rules.add(Rule(verdict="deny", id="no"), user_id="u")
        failed = await outcome_of(two, weigh(1))
        assert isinstance(failed, Failed)
        assert failed.kind == "orphaned"
        scale.open.set()
    assert scale.runs == [1]
