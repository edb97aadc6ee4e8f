"""What was approved is what runs, whatever a store, an owner, a hook or a caller makes of it meanwhile."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from engine import ActionSettings, CallContext, Engine, ToolRow
from events import Approved, Executed, Failed, Paused, Proposed, Refused
from projections.listing import Wanted, list_attempts
from tests.engine.gating import APPROVED_FIRST, Executor, Shelf, paused, resumed, submitted
from tests.engine.staging import CONTEXT, call, outcome_of, proved, row_of, staged, staged_engine, stream_of, tool_of

__all__ = ()

pytestmark = pytest.mark.anyio

BATCH: dict[str, Any] = {"type": "object", "properties": {"batch": {"type": "string"}, "limit": {"type": "integer"}}}
ODD = '{"b":1,"aa":{"y":1,"x":2},"n":1e3,"z":-0,"f":1.0,"big":123456789012345678901234567890,"b":2}'
approve = partial(Engine.decide, approve=True, by="alice", user_id="u")


async def never(**kwargs: Any) -> str:
    raise AssertionError(f"it was run with {kwargs}")


def limited(limit: int) -> list[ToolRow]:
    """Return a row whose owner has pinned a limit."""
    settings = ActionSettings(name="bump", pinned={"limit": limit}, require_approval=True)
    return [ToolRow(id="t1", name="counter", user_id="u", actions=[settings])]


async def test_case_approval_01_what_its_owner_changes_after_the_approval_is_asked_about_again(
    journal_url: str,
) -> None:
    """Something between approval and run sets another limit: whoever approved has to be asked about that."""
    shelf = Shelf()
    tool = tool_of(shelf.take, parameters=BATCH)
    async with staged_engine(journal_url, tool, rows=limited(70)) as engine:
        await paused(engine, call({"batch": "Q-7"}))
        await approve(engine, "m:c1")
    async with staged_engine(journal_url, tool, rows=limited(12)) as engine:
        again = await resumed(engine)
        assert isinstance(again, Paused)
        assert again.rule == "definition_changed"
        assert shelf.taken == []
        await approve(engine, "m:c1")
        assert isinstance(await resumed(engine), Executed)
        assert shelf.taken == [{"batch": "Q-7", "limit": 12}]
        await proved(engine)


async def test_case_approval_01_arguments_come_in_by_no_side_door(journal_url: str) -> None:
    """Given as a result, in the context, or in the model's call again: they are refused, or another call that waits."""
    shelf = Shelf()
    async with staged(journal_url, shelf.take, parameters=BATCH, metadata=APPROVED_FIRST) as engine:
        await paused(engine, call({"batch": "Q-7"}))
        with pytest.raises(Refused, match="waits for a decision"):
            await submitted(engine, {"arguments": {"batch": "Q-9"}})
        await approve(engine, "m:c1")
        with pytest.raises(Refused, match="does not wait"):
            await submitted(engine, {"arguments": {"batch": "Q-9"}})
        other = await paused(engine, call({"batch": "Q-9"}))
        assert other.key == "m:c1#2"
        foreign = replace(CONTEXT, client_tools=({"name": "bump", "parameters": {}},), tool_ids=())
        executed = await resumed(engine, context=foreign)
        assert isinstance(executed, Executed)
        assert shelf.taken == [{"batch": "Q-7"}]
        await proved(engine)


async def test_case_approval_01_a_hook_is_shown_a_copy_and_changes_nothing(journal_url: str) -> None:
    shelf = Shelf()

    def ask(self: Any, name: str, arguments: dict[str, Any]) -> tuple[bool, bool]:
        arguments["limit"] = 12
        return True, False

    async with staged(journal_url, shelf.take, parameters=BATCH, preview_decision=ask) as engine:
        pause = await paused(engine, call({"batch": "Q-7", "limit": 70}))
        assert pause.arguments == {"batch": "Q-7", "limit": 70}
        await approve(engine, "m:c1")
        assert isinstance(await resumed(engine), Executed)
        assert shelf.taken == [{"batch": "Q-7", "limit": 70}]


async def test_case_approval_03_a_restarted_process_lists_what_waits_and_runs_it_as_configured(
    journal_url: str,
) -> None:
    """Listed, approved and run from the log alone, with the row's own configuration."""
    accounts: list[Any] = []

    async def take(self: Any, action_name: str, /, **kwargs: Any) -> str:
        accounts.append((self.config["account"], self.scope.owner, kwargs))
        return "done"

    tool = tool_of(never, parameters=BATCH, metadata=APPROVED_FIRST, execute_action=take)
    rows = [ToolRow(id="t1", name="counter", user_id="u", config={"account": "stored"})]
    async with staged_engine(journal_url, tool, rows=rows) as engine:
        await paused(engine, call({"batch": "Q-7"}))
    async with staged_engine(journal_url, tool, rows=rows) as engine:
        waiting = [row async for row in list_attempts(engine.log, Wanted(user_id="u", status="proposed"))]
        assert [(row.key, row.gate, row.arguments) for row in waiting] == [("m:c1", "paused", {"batch": "Q-7"})]
        await approve(engine, waiting[0].key)
        assert isinstance(await resumed(engine), Executed)
        with pytest.raises(Refused, match="executed"):
            await resumed(engine)
        assert accounts == [("stored", "u", {"batch": "Q-7"})]
        await proved(engine)


async def test_case_approval_03_a_server_that_is_gone_is_one_clear_failure(journal_url: str) -> None:
    """Its tool's server does not say its actions any more: no hang, no unknown approval."""
    away: list[Exception] = []

    class Mcp(Executor):
        name = "mcp"

        def get_actions_metadata(self) -> list[dict[str, Any]]:
            if away:
                raise away[0]
            return [{"name": "send", "parameters": {}, "require_approval": True}]

    async with staged_engine(journal_url, Mcp) as engine:
        await paused(engine, call({}, name="send"))
        await approve(engine, "m:c1")
    away.append(ConnectionRefusedError("no such host"))
    async with staged_engine(journal_url, Mcp) as engine:
        failed = await resumed(engine)
        assert isinstance(failed, Failed)
        assert "could not be run" in failed.message
        assert [type(event) for event in (await stream_of(engine))[:3]] == [Proposed, Paused, Approved]
        (answer,) = await engine.tool_results("m", user_id="u")
        assert answer["content"].startswith("Error: ")
        await proved(engine)


async def test_case_journal_08_an_approval_holds_for_arguments_that_stores_like_to_rewrite(journal_url: str) -> None:
    """Approved on one worker, run on another: the digest before storing is the digest after reading."""
    shelf = Shelf()
    facts: dict[str, Any] = {"parameters": {"type": "object"}, "metadata": APPROVED_FIRST}
    async with staged(journal_url, shelf.take, **facts) as engine:
        pause = await paused(engine, call(ODD))
        assert pause.arguments["b"] == 2
    async with staged(journal_url, shelf.take, **facts) as engine:
        approval = await approve(engine, "m:c1")
        assert isinstance(approval, Approved)
        assert approval.digest == (await row_of(engine)).digest
    async with staged(journal_url, shelf.take, **facts) as engine:
        assert isinstance(await resumed(engine), Executed)
        assert shelf.taken == [pause.arguments]
        assert repr(shelf.taken[0]) == repr(pause.arguments)
        await proved(engine)


async def test_behaviour_058_without_a_decision_it_is_refused_and_waits_on_any_worker(journal_url: str) -> None:
    async with staged(journal_url, never, parameters=BATCH, metadata=APPROVED_FIRST) as engine:
        await paused(engine, call({"batch": "Q-7"}))
    async with staged(journal_url, never, parameters=BATCH, metadata=APPROVED_FIRST) as engine:
        for _ in range(2):
            with pytest.raises(Refused, match="nobody has approved it"):
                await resumed(engine)
        assert [type(event) for event in await stream_of(engine)] == [Proposed, Paused]
        assert isinstance(
            await outcome_of(engine, call({"batch": "Q-7"}), CallContext(user_id="u", message_id="m")), Paused
        )
