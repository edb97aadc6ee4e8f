"""The paths of the fault matrix: what a consumer does with a call, from its proposal to its end."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import msgspec

from engine import Limits, ToolCall
from events import Executed, Refused
from tests.crash.fault_beside import first_running, rival
from tests.crash.fault_consumer import Consumer
from tests.crash.fault_stage import Stage

__all__ = ("PATHS", "Path", "path_named")

Walk: TypeAlias = Callable[[Consumer, Stage, "Path"], Coroutine[Any, Any, None]]
Beside: TypeAlias = Callable[[Consumer, Stage, ToolCall, str], AbstractAsyncContextManager[None]]

ENDED = frozenset({"Executed", "Failed"})
DENIED = frozenset({"Denied"})


class Path(msgspec.Struct, frozen=True, kw_only=True):
    """One path.

    :ivar walk: the verbs whose awaits are counted
    :ivar story: the kinds of the first call's events, where nothing interferes
    :ivar ends: the kinds with which its calls may end in the log, once somebody has carried on after the fault
    :ivar approve: what a person decides on its calls; ``edited``: the arguments they put in
    :ivar holds: its tool is held after its effect, until it is released
    :ivar gates: the calls whose tool waits for the consumer to let it go on
    :ivar staged: what a worker did before it died; that worker's tool is held
    :ivar beside: goes on beside the consumer, its awaits not counted
    """

    name: str
    walk: Walk
    calls: tuple[ToolCall, ...]
    story: str
    ends: frozenset[str] = ENDED
    headless: bool = False
    limits: Limits = Limits()
    approve: bool | None = None
    edited: dict[str, Any] | None = None
    holds: bool = False
    gates: tuple[str, ...] = ()
    staged: Walk | None = None
    beside: Beside | None = None


def _calls(*names: str) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(id=f"c{place}", name=name, arguments={"n": 1}) for place, name in enumerate(names))


async def executed(consumer: Consumer, _stage: Stage, path: Path) -> None:
    await consumer.execute(path.calls[0])


async def executed_and_confirmed(consumer: Consumer, _stage: Stage, path: Path) -> None:
    for call in path.calls:
        await consumer.execute(call)
    await consumer.confirm()


async def executed_twice(consumer: Consumer, _stage: Stage, path: Path) -> None:
    await consumer.execute(path.calls[0])
    await consumer.execute(path.calls[0])
    await consumer.confirm()


async def repeated_while_running(consumer: Consumer, stage: Stage, path: Path) -> None:
    await consumer.execute(path.calls[0])
    stage.released.set()
    await stage.finished.wait()
    await consumer.execute(path.calls[0])


async def decided(consumer: Consumer, _stage: Stage, path: Path) -> None:
    assert path.approve is not None
    await consumer.execute(path.calls[0])
    await consumer.decide(path.calls[0], path.approve, path.edited)


async def resumed(consumer: Consumer, _stage: Stage, path: Path) -> None:
    await consumer.resume(path.calls[0])
    await consumer.confirm()


async def decided_and_resumed(consumer: Consumer, stage: Stage, path: Path) -> None:
    await decided(consumer, stage, path)
    await resumed(consumer, stage, path)


async def too_late(consumer: Consumer, stage: Stage, path: Path) -> None:
    await decided(consumer, stage, path)
    await consumer.execute(path.calls[1])
    await consumer.resume(path.calls[1])


async def submitted(consumer: Consumer, _stage: Stage, path: Path) -> None:
    await consumer.execute(path.calls[0])
    await consumer.submit(path.calls[0], "done")
    await consumer.confirm()


async def submitted_too_late(consumer: Consumer, _stage: Stage, path: Path) -> None:
    await consumer.execute(path.calls[0])
    await consumer.engine.tool_results(consumer.message, user_id="u", close_open=True)
    try:
        await consumer.submit(path.calls[0], "done")
    except Refused:
        return
    raise AssertionError("a result was taken for a call that had been closed")


async def side_by_side(consumer: Consumer, stage: Stage, path: Path) -> None:
    """Take the events of parallel calls; the next tool goes on when the consumer has all there is.

    How often the consumer waits would else depend on how fast the database is.
    """
    gates = iter(stage.gates.values())
    seen = 0
    async with consumer.engine.execute_all(path.calls, consumer.context) as events:
        async for event in events:
            await consumer.take(event)
            seen += 1
            # Every Proposed, and the Paused of the one that waits.
            has_all = isinstance(event, Executed) or seen == len(path.calls) + 1
            if has_all and (gate := next(gates, None)) is not None:
                gate.set()
    await consumer.confirm()


_RUN = "Proposed Executed Confirmed"
_APPROVED_RUN = "Proposed Paused Approved Resumed Executed Confirmed"
_TAKEN_OVER = "Proposed Paused Approved Resumed Resumed Executed Confirmed"
_NOW = Limits(decide_within=0.0)

PATHS: tuple[Path, ...] = (
    Path(name="normal", story=_RUN, walk=executed_and_confirmed, calls=_calls("ring")),
    Path(name="in a thread", story=_RUN, walk=executed_and_confirmed, calls=_calls("strike")),
    Path(name="duplicate", story=_RUN, walk=executed_twice, calls=_calls("ring")),
    Path(
        name="duplicate of a running call",
        story="Proposed Executed",
        walk=repeated_while_running,
        calls=_calls("ring"),
        holds=True,
        beside=first_running,
    ),
    Path(name="paused", story="Proposed Paused", walk=executed_and_confirmed, calls=_calls("gated"), ends=DENIED),
    Path(name="approved", story=_APPROVED_RUN, walk=decided_and_resumed, calls=_calls("gated"), approve=True),
    Path(
        name="edited",
        story=_APPROVED_RUN,
        walk=decided_and_resumed,
        calls=_calls("gated"),
        approve=True,
        edited={"n": 2},
    ),
    Path(
        name="denied", story="Proposed Paused Denied", walk=decided, calls=_calls("gated"), approve=False, ends=DENIED
    ),
    Path(
        name="expired",
        story="Proposed Paused Denied",
        walk=too_late,
        calls=_calls("gated", "gated"),
        approve=True,
        limits=_NOW,
        ends=DENIED,
    ),
    Path(
        name="client-side",
        story="Proposed Paused Executed Confirmed",
        walk=submitted,
        calls=_calls("client"),
        ends=frozenset({"Executed"}),
    ),
    Path(
        name="headless",
        story="Proposed Denied",
        walk=executed_and_confirmed,
        calls=_calls("gated", "client"),
        headless=True,
        ends=DENIED,
    ),
    Path(name="input asked", story="Proposed Paused Resumed Executed Confirmed", walk=submitted, calls=_calls("ask")),
    Path(
        name="late outcome",
        story="Proposed Failed LateOutcome",
        walk=executed_and_confirmed,
        calls=_calls("ring"),
        holds=True,
        beside=rival,
    ),
    Path(
        name="late result of a client",
        story="Proposed Paused Failed LateOutcome",
        walk=submitted_too_late,
        calls=_calls("client"),
    ),
    Path(name="idempotent takeover", story=_RUN, walk=executed_and_confirmed, calls=_calls("again"), staged=executed),
    Path(
        name="takeover by resume",
        story=_TAKEN_OVER,
        walk=resumed,
        calls=_calls("gated_again"),
        approve=True,
        staged=decided_and_resumed,
    ),
    Path(
        name="takeover by repetition",
        story=_TAKEN_OVER,
        walk=executed_and_confirmed,
        calls=_calls("gated_again"),
        approve=True,
        staged=decided_and_resumed,
    ),
    Path(
        name="orphaned",
        story="Proposed Failed",
        walk=executed,
        calls=_calls("ring"),
        staged=executed,
        ends=frozenset({"Failed"}),
    ),
    Path(
        name="execute_all",
        story=_RUN,
        walk=side_by_side,
        calls=_calls("ring", "gated", "ring", "again"),
        approve=True,
        gates=("c0", "c2", "c3"),
    ),
)


def path_named(name: str) -> Path:
    """Return a path."""
    return next(path for path in PATHS if path.name == name)
