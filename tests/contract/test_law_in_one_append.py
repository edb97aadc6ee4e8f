"""Two events in one append meet the law as if they came one after the other, in every state (DESIGN 5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import msgspec
import pytest

from events import EventLog, ToolEvent, TransitionRejected
from projections import verify
from projections.rows import read_attempt
from tests.contract.test_law import EVENTS, STATES, folded
from tests.events.appends import proposed
from tests.lives import state_after

__all__ = ()

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> Any:
    """The guards live in the database: one event loop is enough."""
    return "asyncio"


class Two(msgspec.Struct, frozen=True):
    """Two events that meet a state together."""

    state: str
    one: str
    two: str
    idempotent: bool

    def path(self) -> list[ToolEvent]:
        """The events that lead to the state."""
        first = proposed(f"{self.state}/{self.one}/{self.two}/{self.idempotent}", idempotent=self.idempotent)
        return [first, *(make(first) for make in STATES[self.state])]


def twos() -> Iterator[Two]:
    for state in STATES:
        for one in EVENTS:
            for two in EVENTS:
                yield Two(state, one, two, True)
                if "takeover" in (one, two):
                    yield Two(state, one, two, False)


async def test_two_events_in_one_append_keep_the_law(log: EventLog) -> None:
    wrong: list[Two] = []
    everything = list(twos())
    for start in range(0, len(everything), 200):
        async with anyio.create_task_group() as tasks:
            for two in everything[start : start + 200]:
                tasks.start_soon(_meet, log, two, wrong)
    assert wrong == []
    assert (await verify(log)).ok


async def _meet(log: EventLog, two: Two, wrong: list[Two]) -> None:
    path = two.path()
    first: Any = path[0]
    await log.append(first.key, path, 0, "u")
    events = [EVENTS[two.one](first), EVENTS[two.two](first)]
    before = folded(path)
    assert before is not None
    after = state_after(before, events)
    try:
        await log.append(first.key, events, len(path), "u")
    except TransitionRejected:
        accepted = False
    else:
        accepted = True
    row = await read_attempt(log, first.key, "u")
    if accepted != (after is not None) or row is None or row.attempt != (after or before):
        wrong.append(two)
