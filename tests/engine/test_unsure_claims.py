"""A claim of which nobody knows whether it was written, for the journal went away: what then happens to the call."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from msgspec.structs import replace

from engine import Engine, Settings, Tool
from engine.settings import Limits
from events import Approved, Executed, LogUnavailable, Paused, Proposed, Resumed
from events.types import StreamEvent
from tests.engine.losing import LosableJournal, drained, on_losable, spooling
from tests.engine.staging import CONTEXT, call, events_of, proved, row_of, stream_of, tool_of

__all__ = ()

pytestmark = pytest.mark.anyio

SHORT = Limits(cleanup=0.2)


async def resumed(engine: Engine) -> list[StreamEvent]:
    async with aclosing(engine.resume("m:c1", CONTEXT)) as stream:
        return [event async for event in stream]


class Worked:
    """A tool that needs approval and tells when it runs; it ends when it is let.

    :ivar asked: is called when it is asked whether it does need approval, which is just before a call is claimed
    """

    def __init__(self) -> None:
        self.runs = 0
        self.asked: Callable[[], object] = int
        self.began = anyio.Event()
        self.ends = anyio.Event()

    async def works(self) -> str:
        self.runs += 1
        self.began.set()
        await self.ends.wait()
        return "it ran"

    def tool(self) -> type[Tool]:
        def preview_decision(tool: Tool, action_name: str, arguments: Any) -> tuple[bool, bool]:
            self.asked()
            return True, False

        return tool_of(self.works, preview_decision=preview_decision)


async def approved_then_away(engine: Engine, journal: LosableJournal, worked: Worked) -> None:
    """Have a call approved, and its resume fail, since the journal goes away between what is read and the claim."""
    _, paused = await events_of(engine, call())
    assert isinstance(paused, Paused)
    await engine.decide("m:c1", approve=True, by="alice", user_id="u")
    worked.asked = journal.go_away
    with pytest.raises(LogUnavailable):
        await resumed(engine)
    worked.asked = int
    with anyio.fail_after(30):
        while not journal.readable and not engine.statistics().spool.depth:
            await checkpoint()


def settings_of(folder: Path) -> Settings:
    return spooling(folder, limits=SHORT)


async def test_what_another_worker_claimed_is_not_ended_by_it(losable: LosableJournal, tmp_path: Path) -> None:
    worked, here = Worked(), settings_of(tmp_path)
    async with on_losable(losable, here, worked.tool()) as first:
        await approved_then_away(first, losable, worked)
    losable.come_back()

    async with on_losable(losable, replace(here, spool=tmp_path / "elsewhere"), worked.tool()) as second:
        told: list[StreamEvent] = []

        async def run() -> None:
            told.extend(await resumed(second))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await worked.began.wait()
            # The first machine's next engine writes what it finds in its spool.
            async with on_losable(losable, here, worked.tool()) as next_engine:
                await drained(next_engine)
            worked.ends.set()
        assert [event.result for event in told if isinstance(event, Executed)] == ["it ran"]
        assert [type(event) for event in await stream_of(second)] == [Proposed, Paused, Approved, Resumed, Executed]
        assert (await row_of(second)).status == "executed"
        assert worked.runs == 1
        await proved(second)


async def test_a_repetition_is_told_what_the_log_says(losable: LosableJournal, tmp_path: Path) -> None:
    worked = Worked()
    async with on_losable(losable, settings_of(tmp_path), worked.tool()) as engine:
        await approved_then_away(engine, losable, worked)
        with pytest.raises(LogUnavailable):
            await events_of(engine, call())
        losable.come_back()
        told = await events_of(engine, call())
        assert [type(event) for event in told] == [Proposed, Paused]
        assert all(event.position is not None for event in told)
        worked.ends.set()
        (outcome,) = await resumed(engine)
        assert isinstance(outcome, Executed)
        assert worked.runs == 1
        await proved(engine)
