"""Always allow this: what a decision grants, to whom, for how long, and what it never opens."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from engine import EVERYONE, CallContext, Rule, ToolRow
from events import Denied, Executed, LogUnavailable, Paused, Refused
from tests.engine.gating import APPROVED_FIRST, Device, command, device_row, paused, resumed
from tests.engine.staging import call, outcome_of, proved, row_of, staged, staged_engine, tool_of
from tests.engine.test_rules import DENY, answer, never, two_engines

__all__ = ()

pytestmark = pytest.mark.anyio

TALK = CallContext(user_id="u", message_id="m", conversation_id="k")


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
