"""``resume``: what was approved is what runs, once, on whichever worker claims it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import anyio
import pytest

from engine import Attachment, CallContext, Engine, Limits, Settings, ToolContext
from events import Approved, Denied, Executed, Failed, NotFound, Paused, Proposed, Refused, Resumed
from tests.engine.gating import (
    APPROVED_FIRST,
    NUMBER,
    Outcome,
    Shelf,
    paused,
    resumed,
    submitted,
)
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

approve = partial(Engine.decide, approve=True, by="alice", user_id="u")


async def never(**kwargs: Any) -> str:
    raise AssertionError(f"it was run with {kwargs}")


async def test_it_yields_only_what_it_appends(journal_url: str) -> None:
    shelf = Shelf()
    async with staged(journal_url, shelf.take, parameters=NUMBER, metadata=APPROVED_FIRST) as engine:
        await paused(engine, call({"n": 1}))
        await approve(engine, "m:c1")
        executed = await resumed(engine)
        assert isinstance(executed, Executed)
        assert [type(event) for event in await stream_of(engine)] == [Proposed, Paused, Approved, Resumed, Executed]
        assert (await stream_of(engine))[-1] == executed
        row = await row_of(engine)
        assert (row.status, row.result, row.worker) == ("executed", executed.result, engine.statistics().worker)
        assert await engine.confirm("m", user_id="u") == 1
        # Sent again by the model, it is told again.
        assert (await events_of(engine, call({"n": 1})))[1] == executed
        assert shelf.taken == [{"n": 1}]
        await proved(engine)


async def test_of_the_context_only_the_user_and_the_attachments_are_read(journal_url: str) -> None:
    seen: list[ToolContext] = []

    async def look(context: ToolContext) -> str:
        seen.append(context)
        return "looked"

    turn = CallContext(user_id="u", message_id="m", conversation_id="k", run_id="r", agent_id="a", tool_ids=("t1",))
    later = CallContext(user_id="u", message_id="other", headless=True, tool_ids=(), attachments=(Attachment(id="f1"),))
    async with staged(journal_url, look, wants_context=True, metadata=APPROVED_FIRST) as engine:
        await paused(engine, call(), turn)
        await approve(engine, "m:c1")
        assert isinstance(await resumed(engine, "m:c1", later), Executed)
        (given,) = seen
        assert (given.message_id, given.conversation_id, given.run_id, given.agent_id) == ("m", "k", "r", "a")
        assert (given.idempotency_key, given.call_id) == ("m:c1", "c1")
        assert [each.id for each in given.attachments] == ["f1"]


async def test_only_its_tenant_may_resume_it(journal_url: str) -> None:
    async with staged(journal_url, never, metadata=APPROVED_FIRST) as engine:
        await paused(engine, call())
        await approve(engine, "m:c1")
        for other in (None, "", "v"):
            for key in ("m:c1", "m:nothing"):
                with pytest.raises(NotFound, match="there is no call"):
                    await resumed(engine, key, CallContext(user_id=other))
        assert (await row_of(engine)).gate == "approved"


async def test_one_of_many_workers_runs_it(journal_url: str) -> None:
    shelf = Shelf()
    ran: list[Outcome] = []
    refused: list[str] = []

    async def go_on(engine: Engine) -> None:
        try:
            ran.append(await resumed(engine))
        except Refused as error:
            refused.append(str(error))

    tool = tool_of(shelf.take, parameters=NUMBER, metadata=APPROVED_FIRST)
    async with AsyncExitStack() as stack:
        engines = [await stack.enter_async_context(staged_engine(journal_url, tool)) for _ in range(3)]
        await paused(engines[0], call({"n": 1}))
        await approve(engines[0], "m:c1")
        async with anyio.create_task_group() as tasks:
            for engine in engines * 8:
                tasks.start_soon(go_on, engine)
        assert [type(event) for event in ran] == [Executed]
        assert len(refused) == 23
        assert all("cannot be" in text for text in refused)
        assert shelf.taken == [{"n": 1}]
        await proved(engines[0])


async def test_what_was_not_approved_is_not_resumed(journal_url: str) -> None:
    async with staged(journal_url, never, metadata=APPROVED_FIRST) as engine:
        await paused(engine, call())
        with pytest.raises(Refused, match=r"proposed/paused \(awaiting_approval\); nobody has approved it"):
            await resumed(engine)
        await engine.decide("m:c1", approve=False, by="alice", user_id="u")
        with pytest.raises(Refused, match="denied"):
            await resumed(engine)
        await proved(engine)


@pytest.mark.parametrize("approved", [False, True])
async def test_past_the_deadline_it_is_denied(journal_url: str, approved: bool) -> None:
    """An approval lets a call run until the moment that it waited for; an undecided one is closed as well."""
    tool = tool_of(never, metadata=APPROVED_FIRST)
    short = Settings(limits=Limits(decide_within=0.0))
    async with staged_engine(journal_url, tool, settings=short) as engine:
        pause = await paused(engine, call())
        if approved:
            # As if it had been decided a moment before.
            row = await row_of(engine)
            approval = Approved(id="a", by="alice", digest=row.digest, fingerprint=row.fingerprint, **_names(pause))
            await engine.log.append("m:c1", [approval], 2, "u")
        denied = await resumed(engine)
        assert isinstance(denied, Denied)
        assert denied.reason == "expired"
        with pytest.raises(Refused, match="denied"):
            await resumed(engine)
        await proved(engine)


def _names(event: Paused) -> dict[str, Any]:
    names = ("key", "call_id", "message_id", "user_id", "tool_id", "tool_name", "action_name", "llm_name")
    return {name: getattr(event, name) for name in names}


async def test_who_leaves_while_it_runs_leaves_nothing_open(journal_url: str) -> None:
    running = anyio.Event()

    async def hang() -> None:
        running.set()
        await anyio.sleep_forever()

    async with staged(journal_url, hang, metadata=APPROVED_FIRST) as engine:
        await paused(engine, call())
        await approve(engine, "m:c1")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(resumed, engine)
            await running.wait()
            assert (await row_of(engine)).gate == "claimed"
            tasks.cancel_scope.cancel()
        failed = (await stream_of(engine))[-1]
        assert isinstance(failed, Failed)
        assert failed.kind == "cancelled"
        assert "may have had its effect" in failed.message
        await proved(engine)


async def test_an_approved_client_call_goes_to_its_client(journal_url: str) -> None:
    tool = {"name": "write_file", "require_approval": True}
    context = CallContext(user_id="u", message_id="m", client_tools=(tool,))
    async with staged(journal_url, never) as engine:
        await paused(engine, call({"path": "a"}, name="write_file"), context)
        await approve(engine, "m:c1", arguments={"path": "b"})
        pause = await resumed(engine)
        assert isinstance(pause, Paused)
        assert (pause.pause_type, pause.arguments) == ("requires_client_execution", {"path": "b"})
        kinds = [type(event) for event in await stream_of(engine)]
        assert kinds == [Proposed, Paused, Approved, Resumed, Paused]
        with pytest.raises(Refused, match="submit_result"):
            await resumed(engine)
        executed = await submitted(engine, "written")
        assert isinstance(executed, Executed)
        assert executed.resolved == {"parameters": {"path": "b"}}
        await proved(engine)


async def test_an_approved_call_sent_again_waits_for_its_resume(journal_url: str) -> None:
    async with staged(journal_url, never, metadata=APPROVED_FIRST) as engine:
        told = await events_of(engine, call())
        await approve(engine, "m:c1")
        assert await events_of(engine, call()) == told
        assert isinstance(await outcome_of(engine, call(), CONTEXT), Paused)
        assert (await row_of(engine)).gate == "approved"
