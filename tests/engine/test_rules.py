"""Rules in the journal: kept, versioned, of one tenant or of all, and known to every worker at its next call."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from sqlalchemy import update

from engine import EVERYONE, ActionSettings, CallContext, Engine, Rule, ToolRow
from engine.rulebook import Rulebook
from engine.rules import Rules
from engine.schema import policy_rules
from events import Denied, Executed, Failed, LogUnavailable, NotFound, Paused, Refused
from tests.engine.gating import APPROVED_FIRST, Device, Executor, Shelf, command, device_row, headless, paused, resumed
from tests.engine.staging import (
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
from tests.engine.test_duplicates import Scale, declare_dead, run_beside, scale_tool, weigh

__all__ = ()

pytestmark = pytest.mark.anyio

DENY = Rule(verdict="deny", id="no", action="bump", message="not on Fridays")
TALK = CallContext(user_id="u", message_id="m", conversation_id="k")


async def answer(**kwargs: Any) -> str:
    return "ran"


async def never(**kwargs: Any) -> str:
    raise AssertionError(f"it was run with {kwargs}")


class Clock:
    """Stands until it is set."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


async def test_rules_are_added_listed_replaced_and_revoked(journal_url: str) -> None:
    async with Engine.open(journal_url) as engine:
        rules = engine.rules
        first = await rules.add(DENY, user_id="u", by="alice")
        second = await rules.add(Rule(verdict="ask", tool="web*", predicate="url"), user_id="u")
        assert (first.id, first.version, first.everyone, first.created_by) == ("no", 1, False, "alice")
        assert second.id
        assert (first.ordinal, second.ordinal) == (10, 20)
        assert await rules.list(user_id="u") == [first, second]
        changed = await rules.replace("no", Rule(verdict="ask", action="bump"), user_id="u", by="bob", version=1)
        assert (changed.id, changed.version, changed.ordinal, changed.created_by) == ("no", 2, 10, "bob")
        with pytest.raises(Refused, match="is at version 2, not 1"):
            await rules.replace("no", DENY, user_id="u", version=1)
        assert await rules.revoke("no", user_id="u", by="carol") == changed
        with pytest.raises(NotFound):
            await rules.revoke("no", user_id="u")
        with pytest.raises(NotFound):
            await rules.replace("no", DENY, user_id="u")
        assert await rules.list(user_id="u") == [second]
        past = await rules.versions("no", user_id="u")
        assert [(entry.rule, entry.retired_by) for entry in past] == [(first, "bob"), (changed, "carol")]
        assert None not in [entry.retired_at for entry in past]


async def test_adding_the_same_rule_again_changes_nothing_and_another_of_its_id_is_refused(journal_url: str) -> None:
    async with Engine.open(journal_url) as engine:
        rule = await engine.rules.add(DENY, user_id=None)
        assert await engine.rules.add(DENY, user_id=None) == rule
        with pytest.raises(Refused, match="'no'"):
            await engine.rules.add(Rule(verdict="allow", id="no"), user_id=None)
        await engine.rules.revoke("no", user_id=None)
        with pytest.raises(Refused, match="'no'"):
            await engine.rules.add(DENY, user_id=None)
        assert await engine.rules.list(user_id=None) == []


async def test_no_tenant_sees_or_moves_anothers_rules(journal_url: str) -> None:
    async with Engine.open(journal_url) as engine:
        whose = ("u", "v", "", "*", "u*", None, EVERYONE)
        kept = {user_id: await engine.rules.add(DENY, user_id=user_id) for user_id in whose}
        for user_id in whose:
            assert await engine.rules.list(user_id=user_id) == [kept[user_id]]
        with pytest.raises(NotFound):
            await engine.rules.revoke("no", user_id="w")
        assert await engine.rules.versions("no", user_id="w") == []
        await engine.rules.revoke("no", user_id=EVERYONE)
        assert [len(await engine.rules.list(user_id=user_id)) for user_id in whose] == [1] * 6 + [0]
    assert kept[EVERYONE].everyone
    assert not kept["*"].everyone


async def test_only_its_own_tenants_calls_meet_a_rule(journal_url: str) -> None:
    row = ToolRow(id="t1", name="counter")
    async with staged_engine(journal_url, tool_of(answer), rows=[row]) as engine:
        await engine.rules.add(DENY, user_id="u")
        await engine.rules.add(Rule(verdict="deny", tenant="guest-*"), user_id=EVERYONE)
        for user_id, kind in (("u", Denied), ("v", Executed), (None, Executed), ("*", Executed), ("guest-7", Denied)):
            event = await outcome_of(engine, call(), CallContext(user_id=user_id, message_id="m"))
            assert isinstance(event, kind), user_id
        await proved(engine)


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


@asynccontextmanager
async def two_engines(url: str, runs: Any = answer, **facts: Any) -> AsyncIterator[tuple[Engine, Engine]]:
    async with staged(url, runs, **facts) as first, staged(url, runs, **facts) as second:
        yield first, second


async def test_a_change_holds_at_the_next_call_of_another_worker(journal_url: str) -> None:
    async with two_engines(journal_url) as (here, there):
        for round_ in range(3):
            assert isinstance(await outcome_of(there, call(call_id=f"a{round_}")), Executed)
            rule = await here.rules.add(Rule(verdict="deny"), user_id="u")
            assert isinstance(await outcome_of(there, call(call_id=f"b{round_}")), Denied)
            await here.rules.replace(rule.id, Rule(verdict="ask"), user_id="u")
            assert isinstance(await outcome_of(there, call(call_id=f"c{round_}")), Paused)
            await here.rules.revoke(rule.id, user_id="u")
            assert isinstance(await outcome_of(there, call(call_id=f"d{round_}")), Executed)
        await proved(there)


async def test_an_allowance_made_or_ended_elsewhere_holds_at_the_next_call(journal_url: str) -> None:
    async with two_engines(journal_url, metadata=APPROVED_FIRST) as (here, there):
        for round_ in range(3):
            assert isinstance(await outcome_of(there, call(call_id=f"a{round_}")), Paused)
            rule = await here.rules.add(Rule(verdict="allow"), user_id="u")
            assert isinstance(await outcome_of(there, call(call_id=f"b{round_}")), Executed)
            await here.rules.revoke(rule.id, user_id="u")
            assert isinstance(await outcome_of(there, call(call_id=f"c{round_}")), Paused)
        await proved(there)


async def test_rules_expire_by_the_clock(journal_url: str) -> None:
    clock = Clock()
    async with Engine.open(journal_url) as engine:
        rules, book = Rules(engine.log.store, clock), Rulebook(engine.log.store, clock)
        with pytest.raises(Refused, match="expired"):
            await rules.add(Rule(verdict="deny", expires_at=clock.now), user_id="u")
        until = clock.now + timedelta(hours=1)
        rule = await rules.add(Rule(verdict="deny", expires_at=until), user_id="u")
        assert await book.fresh("u")
        assert await rules.list(user_id="u") == [rule]
        clock.now = until
        assert await rules.list(user_id="u") == []
        await rules.add(Rule(verdict="ask"), user_id="u")
        (version,) = await rules.versions(rule.id, user_id="u")
        assert version.retired_at == until


async def test_a_rule_that_has_expired_since_it_was_read_decides_nothing(journal_url: str) -> None:
    async with staged(journal_url, answer) as engine:
        clock = Clock()
        clock.now = datetime.now(UTC)
        engine._runtime.rulebook.now = clock
        await engine.rules.add(Rule(verdict="deny", expires_at=clock.now + timedelta(hours=1)), user_id="u")
        assert isinstance(await outcome_of(engine, call()), Denied)
        clock.now += timedelta(hours=1)
        assert isinstance(await outcome_of(engine, call(call_id="c2")), Executed)


async def test_a_rule_of_a_newer_release_stops_calls_rather_than_be_misread(journal_url: str) -> None:
    async with staged(journal_url, never) as engine:
        await engine.rules.add(DENY, user_id="u")
        newer = update(policy_rules).values(definition='{"verdict":"allow","weekday":"monday"}')
        await engine.log.store.write([newer])
        with pytest.raises(LogUnavailable, match="'no' cannot be read by this release"):
            await events_of(engine, call())
        last = (await stream_of(engine))[-1]
        assert not isinstance(last, Executed)


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


async def test_always_allow_this_for_this_conversation(journal_url: str) -> None:
    async with two_engines(journal_url, metadata=APPROVED_FIRST) as (here, there):
        await paused(here, call(), TALK)
        approval = await here.decide("m:c1", approve=True, by="alice", user_id="u", remember=timedelta(hours=1))
        (rule,) = await here.rules.list(user_id="u")
        assert (rule.id, rule.decision, rule.created_by, rule.verdict) == (approval.id, "m:c1", "alice", "allow")
        assert (rule.conversation_id, rule.tool_id, rule.action) == ("k", "t1", "bump")
        assert isinstance(await resumed(here, context=TALK), Executed)
        next_turn = CallContext(user_id="u", message_id="m2", conversation_id="k")
        done = await outcome_of(there, call({"n": 2}), next_turn)
        assert isinstance(done, Executed)
        assert done.rule == f"rule:{rule.id}@1"
        for other in (
            CallContext(user_id="u", message_id="m3", conversation_id="other"),
            CallContext(user_id="u", message_id="m4"),
        ):
            assert isinstance(await outcome_of(there, call(), other), Paused)
        unwatched = CallContext(user_id="u", message_id="m5", conversation_id="k", headless=True)
        assert isinstance(await outcome_of(there, call(), unwatched), Denied)
        await there.rules.revoke(rule.id, user_id="u")
        assert isinstance(await outcome_of(here, call(call_id="c9"), next_turn), Paused)
        await proved(here)


async def test_what_was_granted_is_granted_to_no_other_tenant(journal_url: str) -> None:
    row = ToolRow(id="t1", name="counter")
    async with staged_engine(journal_url, tool_of(answer, metadata=APPROVED_FIRST), rows=[row]) as engine:
        await paused(engine, call(), TALK)
        await engine.decide("m:c1", approve=True, by="a", user_id="u", remember=timedelta(hours=1))
        for user_id in ("v", None):
            context = CallContext(user_id=user_id, message_id="m", conversation_id="k")
            assert isinstance(await outcome_of(engine, call(), context), Paused)


async def test_what_was_granted_without_a_conversation_is_for_calls_without_one(journal_url: str) -> None:
    async with staged(journal_url, answer, metadata=APPROVED_FIRST) as engine:
        await paused(engine, call())
        await engine.decide("m:c1", approve=True, by="a", user_id="u", remember=timedelta(hours=1))
        assert isinstance(await outcome_of(engine, call(call_id="c2")), Executed)
        assert isinstance(await outcome_of(engine, call(call_id="c3"), TALK), Paused)


async def test_a_changed_definition_is_not_what_was_granted(journal_url: str) -> None:
    async with staged(journal_url, answer, metadata=APPROVED_FIRST) as engine:
        await paused(engine, call(), TALK)
        await engine.decide("m:c1", approve=True, by="a", user_id="u", remember=timedelta(hours=1))
    changed = {"require_approval": True, "description": "It bumps, and tells everybody."}
    async with staged(journal_url, never, metadata=changed) as engine:
        assert isinstance(await outcome_of(engine, call(call_id="c2"), TALK), Paused)


async def test_a_denial_stands_before_what_was_granted(journal_url: str) -> None:
    async with staged(journal_url, never, metadata=APPROVED_FIRST) as engine:
        await paused(engine, call(), TALK)
        await engine.decide("m:c1", approve=True, by="a", user_id="u", remember=timedelta(hours=1))
        await engine.rules.add(DENY, user_id="u")
        assert isinstance(await outcome_of(engine, call(call_id="c2"), TALK), Denied)


async def test_what_was_granted_answers_an_asking_rule(journal_url: str) -> None:
    async with staged(journal_url, answer) as engine:
        await engine.rules.add(Rule(verdict="ask"), user_id=EVERYONE)
        await paused(engine, call(), TALK)
        await engine.decide("m:c1", approve=True, by="a", user_id="u", remember=timedelta(hours=1))
        assert isinstance(await outcome_of(engine, call(call_id="c2"), TALK), Executed)


async def test_what_cannot_be_remembered_is_refused_and_still_waits(journal_url: str) -> None:
    async with staged_engine(journal_url, Device, rows=[device_row()]) as engine:
        await paused(engine, command("rm -rf /"))
        with pytest.raises(Refused, match=r"denylist.*decide without remember"):
            await engine.decide("m:c1", approve=True, by="a", user_id="u", remember=timedelta(hours=1))
        await paused(engine, command("ls", call_id="c2"))
        for wrong in (timedelta(0), timedelta(seconds=-1), timedelta(days=5000)):
            with pytest.raises(Refused, match="remember must be"):
                await engine.decide("m:c2", approve=True, by="a", user_id="u", remember=wrong)
        with pytest.raises(Refused, match="a rejection cannot be remembered"):
            await engine.decide("m:c2", approve=False, by="a", user_id="u", remember=timedelta(hours=1))
        assert [(await row_of(engine, key)).gate for key in ("m:c1", "m:c2")] == ["paused", "paused"]
        assert await engine.rules.list(user_id="u") == []


async def test_a_decision_that_cannot_be_remembered_stands_and_says_so(journal_url: str) -> None:
    async with staged(journal_url, answer, metadata=APPROVED_FIRST) as engine:
        await paused(engine, call(), TALK)
        store = engine.log.store
        transact = store.transact

        async def away(work: Any) -> Any:
            raise LogUnavailable("the database is away")

        store.transact = away  # type: ignore[method-assign]
        try:
            with pytest.raises(LogUnavailable, match="is approved, but that could not be remembered"):
                await engine.decide("m:c1", approve=True, by="a", user_id="u", remember=timedelta(hours=1))
        finally:
            store.transact = transact  # type: ignore[method-assign]
        assert (await row_of(engine)).gate == "approved"
        assert isinstance(await resumed(engine, context=TALK), Executed)
        await proved(engine)


@pytest.mark.parametrize("rule", [Rule(verdict="deny", predicate="nowhere(a)"), Rule(verdict="deny", tenant="g*")])
async def test_rules_that_cannot_be_used_are_not_kept(journal_url: str, rule: Rule) -> None:
    async with Engine.open(journal_url) as engine:
        with pytest.raises(Refused):
            await engine.rules.add(rule, user_id="u")
        with pytest.raises(Refused, match="decision"):
            await engine.rules.add(Rule(verdict="allow", decision="m:c1"), user_id="u")
        assert await engine.rules.list(user_id="u") == []


async def test_null_keeps_no_rules_and_says_so() -> None:
    async with staged("null://", answer) as engine:
        with pytest.raises(Refused, match="stores nothing"):
            await engine.rules.add(DENY, user_id="u")
        assert await engine.rules.list(user_id="u") == []
        assert isinstance(await outcome_of(engine, call()), Executed)


async def test_without_rules_a_call_reads_nothing(tmp_path: Path, sqlite_template: Path) -> None:
    shutil.copyfile(sqlite_template, tmp_path / "journal.db")
    async with staged(f"sqlite:///{tmp_path}/journal.db", answer) as engine:
        reads: list[Any] = []
        store = engine.log.store
        read = store.read

        async def counted(statement: Any) -> Any:
            reads.append(statement)
            return await read(statement)

        store.read = counted  # type: ignore[method-assign]
        await outcome_of(engine, call())
        assert reads == []
        await engine.rules.add(Rule(verdict="deny", tool="elsewhere"), user_id="u")
        for number in range(3):
            await outcome_of(engine, call(call_id=f"n{number}"))
        assert len(reads) == 1


async def test_concurrent_changes_all_count(journal_url: str) -> None:
    async with two_engines(journal_url) as (here, there):

        async def add(engine: Engine, number: int) -> None:
            await engine.rules.add(Rule(verdict="ask", id=f"r{number}"), user_id="u")

        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(add, (here, there)[number % 2], number)
        rules = await here.rules.list(user_id="u")
        assert sorted(rule.ordinal or 0 for rule in rules) == [10 * place for place in range(1, 13)]
        assert await there.rules.list(user_id="u") == rules


async def test_a_rule_added_twice_at_once_is_one_or_is_refused(journal_url: str) -> None:
    async with two_engines(journal_url) as (here, there):
        kept: list[Rule] = []

        async def add(engine: Engine) -> None:
            kept.append(await engine.rules.add(DENY, user_id="u"))

        async with anyio.create_task_group() as tasks:
            for engine in (here, there) * 4:
                tasks.start_soon(add, engine)
        assert await here.rules.list(user_id="u") == kept[:1]
        assert kept == kept[:1] * 8


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
