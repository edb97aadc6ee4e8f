"""``decide``: from the log alone, on any worker, exactly once, by the right tenant, only what really waits."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import anyio
import pytest

from engine import ActionSettings, CallContext, Engine, InputRequired, Limits, Settings, ToolRow
from events import Approved, Denied, Executed, Failed, NotFound, Paused, Refused
from tests.engine.gating import APPROVED_FIRST, NUMBER, Shelf, paused, resumed
from tests.engine.staging import (
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

OVER_AT_ONCE = Settings(limits=Limits(decide_within=0.0))
approve = partial(Engine.decide, approve=True, by="alice", user_id="u")
reject = partial(Engine.decide, approve=False, by="alice", user_id="u")


async def never(**kwargs: Any) -> str:
    raise AssertionError(f"it waits, and was run with {kwargs}")


async def test_behaviour_058_three_ways_on(journal_url: str) -> None:
    """Approved, denied with a comment, and no decision for the third."""
    shelf = Shelf()
    async with staged(journal_url, shelf.take, parameters=NUMBER, metadata=APPROVED_FIRST) as engine:
        for number in (1, 2, 3):
            await paused(engine, call({"n": number}, call_id=f"c{number}"))
        assert isinstance(await approve(engine, "m:c1"), Approved)
        denied = await reject(engine, "m:c2", comment="not today")
        assert isinstance(denied, Denied)
        assert (denied.reason, denied.by) == ("rejected", "alice")
        executed = await resumed(engine, "m:c1")
        assert isinstance(executed, Executed)
        assert (executed.call_id, executed.key) == ("c1", "m:c1")
        for key in ("m:c2", "m:c3"):
            with pytest.raises(Refused, match="cannot be resumed"):
                await resumed(engine, key)
        assert (await row_of(engine, "m:c3")).gate == "paused"
        assert shelf.taken == [{"n": 1}]
        contents = [answer["content"] for answer in await engine.tool_results("m", user_id="u")]
        assert contents[0] == '{"taken":{"n":1}}'
        assert "not today" in contents[1]
        assert "waits for a person's approval" in contents[2]
        await proved(engine)


async def test_a_decision_says_who_and_what(journal_url: str) -> None:
    async with staged(journal_url, never, parameters=NUMBER, metadata=APPROVED_FIRST) as engine:
        pause = await paused(engine, call({"n": 1}))
        approval = await approve(engine, "m:c1", comment="go\x00 on")
        assert isinstance(approval, Approved)
        proposed, told, recorded = await stream_of(engine)
        assert (told, recorded) == (pause, approval)
        row = await row_of(engine)
        assert (approval.by, approval.comment) == ("alice", "go on")
        assert (approval.digest, approval.fingerprint) == (row.digest, row.fingerprint)
        assert approval.key == proposed.key
        assert (row.status, row.gate, row.pause_type, row.expires_at) == ("proposed", "approved", None, None)
        assert "approved, and has not run so far" in (await engine.tool_results("m", user_id="u"))[0]["content"]
        await proved(engine)


async def test_a_decision_survives_a_restart(journal_url: str) -> None:
    shelf = Shelf()
    facts: dict[str, Any] = {"parameters": NUMBER, "metadata": APPROVED_FIRST}
    async with staged(journal_url, shelf.take, **facts) as engine:
        await paused(engine, call({"n": 1}))
    async with staged(journal_url, shelf.take, **facts) as engine:
        await approve(engine, "m:c1")
    async with staged(journal_url, shelf.take, **facts) as engine:
        assert isinstance(await resumed(engine), Executed)
        await proved(engine)
    assert shelf.taken == [{"n": 1}]


async def test_a_decision_needs_no_tool(journal_url: str) -> None:
    async with staged(journal_url, never, metadata=APPROVED_FIRST) as engine:
        await paused(engine, call())
    async with Engine.open(journal_url) as engine:
        assert isinstance(await approve(engine, "m:c1"), Approved)


async def test_of_two_hundred_approvals_one_counts(journal_url: str) -> None:
    approvals: list[Approved | Denied] = []
    refusals: list[str] = []

    async def press(engine: Engine, number: int) -> None:
        try:
            approvals.append(await engine.decide("m:c1", approve=True, by=f"p{number}", user_id="u"))
        except Refused as error:
            refusals.append(str(error))

    async with (
        staged(journal_url, never, metadata=APPROVED_FIRST) as one,
        staged(journal_url, never, metadata=APPROVED_FIRST) as two,
    ):
        await paused(one, call())
        async with anyio.create_task_group() as tasks:
            for number in range(200):
                tasks.start_soon(press, (one, two)[number % 2], number)
        (approval,) = approvals
        assert len(refusals) == 199
        assert all("proposed/approved" in text for text in refusals)
        assert [event for event in await stream_of(one) if isinstance(event, Approved)] == [approval]
        await proved(one)


async def test_approving_and_rejecting_together_gives_one_of_them(journal_url: str) -> None:
    decided: list[Approved | Denied] = []

    async def press(engine: Engine, key: str, yes: bool) -> None:
        with suppress(Refused):
            decided.append(await engine.decide(key, approve=yes, by="alice", user_id="u"))

    async with staged(journal_url, never, metadata=APPROVED_FIRST) as engine:
        for number in range(8):
            await paused(engine, call(call_id=f"c{number}"))
            async with anyio.create_task_group() as tasks:
                for yes in (True, False, True, False):
                    tasks.start_soon(press, engine, f"m:c{number}", yes)
        assert len(decided) == 8
        await proved(engine)


async def test_only_what_waits_for_a_person_is_approved(journal_url: str) -> None:
    async def ask() -> InputRequired:
        return InputRequired("which?")

    async def fine() -> str:
        return "fine"

    async def fails() -> str:
        raise ValueError("no")

    tools = [tool_of(each, name=each.__name__, action=each.__name__) for each in (ask, fine, fails)]
    context = CallContext(user_id="u", message_id="m", client_tools=({"name": "client"},))
    async with staged_engine(journal_url, *tools) as engine:
        states = {"ask": "requires_input", "fine": "executed", "fails": "failed", "client": "requires_client_execution"}
        for name, state in states.items():
            await outcome_of(engine, call({}, name=name, call_id=name), context)
            with pytest.raises(Refused, match=state):
                await approve(engine, f"m:{name}")
        for name in ("fine", "fails"):
            with pytest.raises(Refused, match="cannot be rejected"):
                await reject(engine, f"m:{name}")
        for name in ("ask", "client"):
            assert isinstance(await reject(engine, f"m:{name}"), Denied)
        await proved(engine)


@pytest.mark.parametrize("key", ["m:c1", "m:nothing", "", "m:c1\x00", "\ud800", "x" * 5000])
async def test_what_a_tenant_cannot_see_is_not_there(journal_url: str, key: str) -> None:
    async with staged(journal_url, never, metadata=APPROVED_FIRST) as engine:
        await paused(engine, call())
        for other in (None, "", "v", "U", "u "):
            with pytest.raises(NotFound) as foreign:
                await engine.decide(key, approve=True, by="eve", user_id=other)
            assert str(foreign.value) == f"there is no call {key!r}"
        assert (await row_of(engine)).gate == "paused"
        assert await engine.log.head() == 2


@pytest.mark.parametrize("yes", [True, False])
async def test_past_its_deadline_it_is_denied_whatever_was_decided(journal_url: str, yes: bool) -> None:
    tool = tool_of(never, metadata=APPROVED_FIRST)
    async with staged_engine(journal_url, tool, settings=OVER_AT_ONCE) as engine:
        await paused(engine, call())
        denied = await engine.decide("m:c1", approve=yes, by="alice", user_id="u")
        assert isinstance(denied, Denied)
        assert denied.reason == "expired"
        assert "deadline" in denied.message
        with pytest.raises(Refused, match="it is denied"):
            await approve(engine, "m:c1")
        await proved(engine)


async def test_without_a_limit_there_is_no_deadline(sqlite_url: str) -> None:
    tool = tool_of(never, metadata=APPROVED_FIRST)
    async with staged_engine(sqlite_url, tool, settings=Settings(limits=Limits(decide_within=None))) as engine:
        assert (await paused(engine, call())).expires_at is None
        assert isinstance(await approve(engine, "m:c1"), Approved)


async def test_edits_are_checked_and_kept_beside_the_originals(journal_url: str) -> None:
    shelf = Shelf()
    async with staged(journal_url, shelf.take, parameters=NUMBER, metadata=APPROVED_FIRST) as engine:
        await paused(engine, call({"n": 1}))
        before = await row_of(engine)
        wrong: Any
        for wrong in ({"n": "many"}, {"n": None}, [1], "text"):
            with pytest.raises(Refused, match="still waits"):
                await approve(engine, "m:c1", arguments=wrong)
        assert await row_of(engine) == before
        approval = await approve(engine, "m:c1", arguments={"n": 2})
        assert isinstance(approval, Approved)
        assert approval.arguments == {"n": 2}
        row = await row_of(engine)
        assert row.arguments == {"n": 2}
        assert row.digest == before.digest != approval.digest
        # It is still the same call: the model's, sent again, is told, not run.
        assert isinstance((await events_of(engine, call({"n": 1})))[1], Paused)
        await proved(engine)


async def test_what_an_edit_may_not_touch(sqlite_url: str) -> None:
    shelf = Shelf()
    settings = ActionSettings(name="bump", pinned={"n": 7}, require_approval=True)
    rows = [ToolRow(id="t1", name="counter", user_id="u", actions=[settings])]
    async with staged_engine(sqlite_url, tool_of(shelf.take, parameters=NUMBER), rows=rows) as engine:
        await paused(engine, call({}))
        with pytest.raises(Refused, match="cannot be set"):
            await approve(engine, "m:c1", arguments={"n": 8})
        await approve(engine, "m:c1", arguments={})
        await resumed(engine)
        assert shelf.taken == [{"n": 7}]


async def test_edits_need_the_tool_that_checks_them(sqlite_url: str) -> None:
    async with staged(sqlite_url, never, metadata=APPROVED_FIRST) as engine:
        await paused(engine, call())
    async with Engine.open(sqlite_url) as engine:
        with pytest.raises(Refused, match="not there any more"):
            await approve(engine, "m:c1", arguments={})
        assert (await row_of(engine)).gate == "paused"


async def test_requests_that_make_no_sense_are_refused(sqlite_url: str) -> None:
    async with staged(sqlite_url, never, metadata=APPROVED_FIRST) as engine:
        await paused(engine, call())
        with pytest.raises(Refused, match="arguments cannot be edited"):
            await reject(engine, "m:c1", arguments={})
        with pytest.raises(Refused, match="remember"):
            await approve(engine, "m:c1", remember=timedelta(0))
        with pytest.raises(Refused, match="give by"):
            await engine.decide("m:c1", approve=True, by=" ", user_id="u")
        with pytest.raises(Refused, match="NUL"):
            await engine.decide("m:c1", approve=True, by="a\x00", user_id="u")
        assert (await row_of(engine)).version == 2


async def test_a_call_that_was_moved_on_from_cannot_be_approved(journal_url: str) -> None:
    async with staged(journal_url, never, metadata=APPROVED_FIRST) as engine:
        await paused(engine, call())
        await engine.tool_results("m", user_id="u", close_open=True)
        with pytest.raises(Refused, match="denied"):
            await approve(engine, "m:c1")
        await proved(engine)


async def test_a_bare_call_is_decided_by_its_bare_key(journal_url: str) -> None:
    shelf = Shelf()
    async with staged(journal_url, shelf.take, metadata=APPROVED_FIRST) as engine:
        await paused(engine, call(), bare)
        await approve(engine, "c1")
        assert isinstance(await resumed(engine, "c1", bare), Executed)
        assert (await row_of(engine, "c1")).status == "confirmed"
        with pytest.raises(Refused, match="confirmed"):
            await approve(engine, "c1")
        assert not isinstance(await outcome_of(engine, call(), bare), Failed)
        await proved(engine)
