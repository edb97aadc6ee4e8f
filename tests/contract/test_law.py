"""The lifecycle holds three times: the pure fold, the database's guards, and the table of DESIGN 5, told here again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import anyio
import msgspec
import pytest

from events import (
    Append,
    Approved,
    Confirmed,
    Denied,
    EventLog,
    Executed,
    Failed,
    JournalError,
    LateOutcome,
    Paused,
    Proposed,
    Resumed,
    ToolEvent,
    TransitionRejected,
)
from events.transitions import Attempt, advance, describe
from projections import verify
from projections.rows import read_attempt
from tests.events.appends import follow, proposed

__all__ = ()

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> Any:
    """The guards live in the database: one event loop is enough."""
    return "asyncio"


def paused(kind: str) -> Callable[[Proposed], ToolEvent]:
    return lambda first: follow(Paused, first, pause_type=kind, reason="ask")


def denied(reason: str) -> Callable[[Proposed], ToolEvent]:
    return lambda first: follow(Denied, first, reason=reason, message="no")


def approved(first: Proposed) -> ToolEvent:
    return follow(Approved, first, by="ada", digest=first.digest, fingerprint="f")


def resumed(first: Proposed) -> ToolEvent:
    return follow(Resumed, first, worker="w2")


def executed(first: Proposed) -> ToolEvent:
    return follow(Executed, first, result=1)


def failed(first: Proposed) -> ToolEvent:
    return follow(Failed, first, kind="exception", message="boom")


def confirmed(first: Proposed) -> ToolEvent:
    return follow(Confirmed, first)


def late(first: Proposed) -> ToolEvent:
    return follow(LateOutcome, first, outcome=follow(Failed, first, kind="timeout", message="late"))


Maker = Callable[[Proposed], ToolEvent]
FOR_APPROVAL, FOR_CLIENT, FOR_INPUT = (
    paused("awaiting_approval"),
    paused("requires_client_execution"),
    paused("requires_input"),
)
STATES: dict[str, tuple[Maker, ...]] = {
    "open": (),
    "for approval": (FOR_APPROVAL,),
    "for client": (FOR_CLIENT,),
    "for input": (FOR_INPUT,),
    "approved": (FOR_APPROVAL, approved),
    "claimed": (FOR_APPROVAL, approved, resumed),
    "executed": (executed,),
    "confirmed": (executed, confirmed),
    "denied": (denied("policy"),),
    "failed": (failed,),
}
ENDED = {"executed", "confirmed", "denied", "failed"}
EVENTS: dict[str, Maker] = {
    "ask approval": FOR_APPROVAL,
    "ask client": FOR_CLIENT,
    "ask input": FOR_INPUT,
    "approve": approved,
    "resume": resumed,
    "answer": lambda first: follow(Resumed, first, worker="w2", answer={"yes": True}),
    "takeover": lambda first: follow(Resumed, first, worker="w2", takeover=True),
    "execute": executed,
    "fail": failed,
    "confirm": confirmed,
    "late outcome": late,
    **{
        f"deny {reason}": denied(reason)
        for reason in ("headless", "policy", "denylist", "duplicate", "rejected", "expired", "superseded")
    },
}
LAW: dict[str, set[str]] = {
    "ask approval": {"open", "approved"},
    "ask client": {"open", "claimed"},
    "ask input": {"open", "claimed"},
    "approve": {"for approval"},
    "resume": {"approved"},
    "answer": {"for input"},
    "takeover": {"claimed"},
    "execute": {"open", "claimed", "for client"},
    "fail": {"open", "claimed", "for client", "for input"},
    "confirm": {"executed"},
    "late outcome": set(STATES),
    "deny headless": {"open"},
    "deny duplicate": {"open"},
    "deny policy": {"open", "approved"},
    "deny denylist": {"open", "approved"},
    "deny rejected": {"for approval", "for client", "for input"},
    "deny expired": {"for approval", "approved"},
    "deny superseded": {"for approval", "approved"},
}
NOT_LATE = {"ask approval", "ask client", "ask input", "approve", "resume", "answer", "takeover"}


class Pair(msgspec.Struct, frozen=True):
    """An event that meets a state."""

    state: str
    event: str
    idempotent: bool
    is_late: bool

    @property
    def legal(self) -> bool:
        """What the table says."""
        allowed = self.state in LAW[self.event] and not (self.is_late and self.event in NOT_LATE)
        return allowed and (self.idempotent or self.event != "takeover")

    def path(self) -> list[ToolEvent]:
        """The events that lead to the state."""
        name = f"{self.state}/{self.event}/{self.idempotent}/{self.is_late}"
        first = proposed(name, idempotent=self.idempotent)
        steps: list[ToolEvent] = [first, *(make(first) for make in STATES[self.state])]
        return [*steps, late(first)] if self.is_late else steps


def pairs() -> Iterator[Pair]:
    for state in STATES:
        for event in EVENTS:
            for idempotent in (False, True):
                for is_late in (False, True):
                    yield Pair(state, event, idempotent, is_late)


def folded(events: list[ToolEvent]) -> Attempt | None:
    attempt: Attempt | None = None
    for event in events:
        attempt = advance(attempt, event)
    return attempt


def test_the_fold_keeps_the_law() -> None:
    assert set(LAW) == set(EVENTS)
    wrong = []
    for pair in pairs():
        path = pair.path()
        first = path[0]
        assert isinstance(first, Proposed)
        try:
            advance(folded(path), EVENTS[pair.event](first))
        except TransitionRejected:
            allowed = False
        else:
            allowed = True
        if allowed != pair.legal:
            wrong.append(pair)
    assert wrong == []


def test_nothing_but_a_proposal_begins_a_call_and_only_once() -> None:
    first = proposed("c1")
    for make in EVENTS.values():
        with pytest.raises(TransitionRejected):
            advance(None, make(first))
    with pytest.raises(TransitionRejected):
        advance(advance(None, first), proposed("c1"))


async def test_the_guards_of_the_database_keep_the_law(log: EventLog) -> None:
    wrong: list[Pair] = []
    for batch in _batches(list(pairs()), 90):
        async with anyio.create_task_group() as tasks:
            for pair in batch:
                tasks.start_soon(_meet, log, pair, wrong)
    assert wrong == []
    assert (await verify(log)).ok


async def _meet(log: EventLog, pair: Pair, wrong: list[Pair]) -> None:
    path = pair.path()
    first = path[0]
    assert isinstance(first, Proposed)
    # One append an event: each meets the guard, none is covered by the check of what may follow in one append.
    for version, event in enumerate(path):
        await log.append(first.key, [event], version, "u")
    event = EVENTS[pair.event](first)
    before = folded(path)
    assert before is not None
    said = ""
    try:
        await log.append(first.key, [event], len(path), "u")
    except JournalError as error:
        # Nothing is asserted here: whatever fails in one task would take the others' log away.
        said = str(error) if isinstance(error, TransitionRejected) else "another error"
    row = await read_attempt(log, first.key, "u")
    after = advance(before, event) if pair.legal else before
    told = not said if pair.legal else describe(before) in said
    if row is None or row.attempt != after or not told:
        wrong.append(pair)


async def test_several_streams_meet_the_same_guards(log: EventLog) -> None:
    for pair in pairs():
        if not pair.idempotent or pair.is_late or pair.event == "takeover":
            continue
        path = pair.path()
        first, other = path[0], proposed(f"beside {pair.state}/{pair.event}")
        assert isinstance(first, Proposed)
        await log.append(first.key, path, 0, "u")
        event = EVENTS[pair.event](first)
        appends = [
            Append(key=first.key, events=(event,), expected_version=len(path), user_id="u"),
            Append(key=other.key, events=(other,), expected_version=0, user_id="u"),
        ]
        if pair.legal:
            await log.append_many(appends)
        else:
            with pytest.raises(TransitionRejected):
                await log.append_many(appends)
        assert (await read_attempt(log, other.key, "u") is not None) is pair.legal
    assert (await verify(log)).ok


def _batches(everything: list[Pair], size: int) -> Iterator[list[Pair]]:
    for start in range(0, len(everything), size):
        yield everything[start : start + size]
