"""Traces and metrics: one span per call, never current between the events, ended once (OTEL, CASES OTEL-01)."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from engine import CallContext, Engine
from events import Executed, Failed, Proposed
from tests.engine.staging import CONTEXT, bare, call, events_of, outcome_of, row_of, staged, staged_engine, tool_of
from tests.engine.station import Station
from tests.engine.stuck_calls import DAY, hold_long, later, staged_call
from tests.shape import ROOT

__all__ = ()

pytestmark = pytest.mark.anyio

OK = {"type": "object", "properties": {"how": {"type": "string"}}}


async def behaves(how: str = "well") -> Any:
    match how:
        case "badly":
            return {"error": "no"}
        case "raises":
            raise LookupError("boom")
        case "hangs":
            await anyio.sleep_forever()
    await checkpoint()
    return "fine"


@asynccontextmanager
async def traced(url: str, **facts: Any) -> AsyncIterator[Engine]:
    async with staged(url, behaves, parameters=OK, **facts) as engine:
        yield engine


async def test_one_span_per_call_a_child_of_its_callers(station: Station, journal_url: str) -> None:
    context = CallContext(user_id="u", message_id="m", conversation_id="k", agent_id="a", tool_ids=("t1",))
    async with traced(journal_url) as engine:
        with station.tracer.start_as_current_span("agent") as agent:
            proposed, executed = await events_of(engine, call({}), context)
        (span,) = station.spans()
        own = span.get_span_context()
        assert own is not None
        assert (span.name, span.kind) == ("execute_tool bump", SpanKind.INTERNAL)
        assert span.parent is not None
        assert span.parent.span_id == agent.get_span_context().span_id
        assert own.trace_id == agent.get_span_context().trace_id
        assert dict(span.attributes or {}) == {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "bump",
            "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.type": "function",
            "gen_ai.tool.description": "It bumps.",
            "gen_ai.conversation.id": "k",
            "gen_ai.agent.id": "a",
            "calljournal.key": "m:c1",
            "calljournal.gate.decision": "allow",
            "calljournal.status": "executed",
            "calljournal.position": executed.position,
        }
        assert span.status.status_code is StatusCode.UNSET
        # The log keeps where the call came from.
        assert isinstance(proposed, Proposed)
        assert proposed.traceparent == f"00-{own.trace_id:032x}-{span.parent.span_id:016x}-{own.trace_flags:02x}"
        assert (await row_of(engine)).traceparent == proposed.traceparent


async def test_the_parent_is_who_made_the_call_whatever_is_current_later(station: Station, sqlite_url: str) -> None:
    async with traced(sqlite_url) as engine, aclosing(engine.execute(call({}), CONTEXT)) as stream:
        with station.tracer.start_as_current_span("agent") as agent:
            await anext(stream)
        with station.tracer.start_as_current_span("something else"):
            await anext(stream)
        (span,) = station.spans()
        assert span.parent is not None
        assert span.parent.span_id == agent.get_span_context().span_id


async def test_without_a_caller_it_is_a_root(station: Station, sqlite_url: str) -> None:
    async with traced(sqlite_url) as engine:
        proposed, _ = await events_of(engine, call({}))
        (span,) = station.spans()
        assert span.parent is None
        assert isinstance(proposed, Proposed)
        assert proposed.traceparent is None
        assert (await row_of(engine)).traceparent is None


async def test_it_is_current_in_the_tool_and_never_between_the_events(station: Station, sqlite_url: str) -> None:
    seen: list[str] = []

    def name_of_current() -> str:
        return str(getattr(trace.get_current_span(), "name", "none"))

    async def looks() -> str:
        seen.append(name_of_current())
        await checkpoint()
        seen.append(name_of_current())
        return ""

    def looks_in_a_thread() -> str:
        seen.append(name_of_current())
        return ""

    tools = [tool_of(looks, name="one", action="one"), tool_of(looks_in_a_thread, name="two", action="two")]
    async with staged_engine(sqlite_url, *tools) as engine:
        with station.tracer.start_as_current_span("agent"):
            for name in ("one", "two"):
                async with aclosing(engine.execute(call(name=name, call_id=name), CONTEXT)) as stream:
                    async for _ in stream:
                        assert name_of_current() == "agent"
                assert name_of_current() == "agent"
    assert seen == ["execute_tool one"] * 2 + ["execute_tool two"]


@pytest.mark.parametrize(
    ("how", "error", "status"),
    [("badly", "tool_error", "executed"), ("raises", "LookupError", "failed"), ("hangs", "timeout", "failed")],
)
async def test_errors_are_errors(station: Station, sqlite_url: str, how: str, error: str, status: str) -> None:
    async with traced(sqlite_url, timeout=0.05) as engine:
        await events_of(engine, call({"how": how}))
        (span,) = station.spans()
        assert span.status.status_code is StatusCode.ERROR
        attributes = dict(span.attributes or {})
        assert (attributes["error.type"], attributes["calljournal.status"]) == (error, status)
        # What a tool says may be anything: it stays out of the trace.
        assert "boom" not in str(attributes) + str(span.status.description) + str(span.events)


async def test_waiting_and_denial_are_no_errors(station: Station, sqlite_url: str) -> None:
    headless = CallContext(user_id="u", message_id="h", headless=True)
    async with traced(sqlite_url, metadata={"require_approval": True}) as engine:
        for context, decision, status in ((CONTEXT, "pause", "paused"), (headless, "deny", "denied")):
            await events_of(engine, call({}), context)
            (span,) = station.spans()
            attributes = dict(span.attributes or {})
            assert span.status.status_code is StatusCode.UNSET
            assert attributes["calljournal.gate.decision"] == decision
            assert attributes["calljournal.gate.rule"] == "require_approval"
            assert attributes["calljournal.status"] == status


async def test_a_repetition_of_what_has_ended_is_no_new_span(station: Station, sqlite_url: str) -> None:
    async with traced(sqlite_url) as engine:
        for _ in range(3):
            await events_of(engine, call({}))
        assert len(station.spans()) == 1


async def dropped(stream: Any, count: int) -> None:
    async for _ in stream:
        count -= 1
        if not count:
            break


async def closed_elsewhere(stream: Any, count: int) -> None:
    for _ in range(count):
        await anext(stream)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stream.aclose)


async def driven_by_several_tasks(stream: Any, count: int) -> None:
    async def step() -> None:
        await anext(stream)

    for _ in range(count):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(step)
    await stream.aclose()


async def cancelled(stream: Any, count: int) -> None:
    """Its second event does not come: the tool hangs."""
    with anyio.move_on_after(0.05):
        async with aclosing(stream):
            for _ in range(count):
                await anext(stream)
            await anyio.sleep_forever()


async def until_ended(engine: Engine, key: str) -> None:
    with anyio.fail_after(5):
        while (await row_of(engine, key)).status == "proposed":
            await checkpoint()


@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("leave", [dropped, closed_elsewhere, driven_by_several_tasks, cancelled])
async def test_case_otel_01_streams_that_are_left(station: Station, sqlite_url: str, leave: Any) -> None:
    how = "hangs" if leave is cancelled else "well"
    async with traced(sqlite_url) as engine:
        with station.tracer.start_as_current_span("agent") as agent:
            for count in (1, 2):
                stream = engine.execute(call({"how": how}, call_id=f"c{count}"), CONTEXT)
                await leave(stream, count)
                del stream
                gc.collect()
                await until_ended(engine, f"m:c{count}")
                assert trace.get_current_span() is agent
        # That which was left after its first event never came to "may run".
        (span,) = station.spans()
        assert dict(span.attributes or {}).get("error.type") == ("cancelled" if leave is cancelled else None)
    # No context was detached where it does not belong: the fixture looks through the log.


async def test_two_streams_closed_crosswise(station: Station, sqlite_url: str) -> None:
    async with traced(sqlite_url) as engine:
        with station.tracer.start_as_current_span("agent") as agent:
            one = engine.execute(call({}, call_id="c1"), CONTEXT)
            two = engine.execute(call({}, call_id="c2"), CONTEXT)
            await anext(one)
            await anext(two)
            await anext(one)
            await anext(two)
            await one.aclose()
            assert trace.get_current_span() is agent
            await two.aclose()
            assert trace.get_current_span() is agent
        assert len(station.spans()) == 2


async def test_transitions_are_counted(station: Station, sqlite_url: str) -> None:
    async with traced(sqlite_url, timeout=0.05) as engine:
        before = totals(station.points("calljournal.transitions"))
        await events_of(engine, call({}))
        await events_of(engine, call({"how": "raises"}, call_id="c2"))
        for number in range(3):
            failed = await outcome_of(engine, call(name=f"invented {number}", call_id=f"i{number}"))
            assert isinstance(failed, Failed)
        assert isinstance(await outcome_of(engine, call({}, call_id="b"), bare), Executed)
        counted = difference(totals(station.points("calljournal.transitions")), before)
        labels = {(entry["tool"], entry["action"], entry["status"]): count for entry, count in counted}
        assert labels == {
            ("counter", "bump", "proposed"): 3,
            ("counter", "bump", "executed"): 2,
            ("counter", "bump", "confirmed"): 1,
            ("counter", "bump", "failed"): 1,
            # Names that a model makes up are no labels: there is no end of them.
            ("unknown", "unknown", "proposed"): 3,
            ("unknown", "unknown", "failed"): 3,
        }


async def test_durations_by_outcome(station: Station, sqlite_url: str) -> None:
    name = "gen_ai.execute_tool.duration"
    async with traced(sqlite_url, timeout=0.05) as engine:
        before = totals(station.points(name))
        for number, how in enumerate(("well", "badly", "raises", "hangs")):
            await events_of(engine, call({"how": how}, call_id=f"c{number}"))
        counted = difference(totals(station.points(name)), before)
        outcomes = {entry["outcome"]: count for entry, count in counted}
        assert outcomes == {"completed": 1, "error": 1, "exception": 1, "timeout": 1}
        for each in ("calljournal.transitions", name, "calljournal.append.duration", "calljournal.append.batch_size"):
            points = station.points(each)
            assert points
            assert {label for point in points for label in point.attributes} <= {"tool", "action", "status", "outcome"}


def totals(points: list[Any]) -> dict[Any, int]:
    """Return how often each set of labels was counted."""
    return {tuple(sorted(point.attributes.items())): getattr(point, "count", None) or point.value for point in points}


def difference(now: dict[Any, int], before: dict[Any, int]) -> list[tuple[dict[str, str], int]]:
    """Return what was counted meanwhile: labels, and how often."""
    found = {labels: count - before.get(labels, 0) for labels, count in now.items()}
    return [(dict(labels), count) for labels, count in found.items() if count]


def test_the_sdk_is_nobodys_to_import() -> None:
    names = "[name for name in sys.modules if name.startswith('opentelemetry.sdk')]"
    script = f"import sys, engine, engine.execution; print({names})"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT, stdin=subprocess.DEVNULL
    )
    assert run.stdout.strip() == "[]"


async def test_a_decision_and_a_resume_are_spans_of_their_own_with_links(station: Station, sqlite_url: str) -> None:
    """They may lie days after the proposal: never one long span, and no child of the agent's that has long ended."""
    async with traced(sqlite_url, metadata={"require_approval": True}) as engine:
        with station.tracer.start_as_current_span("agent") as agent:
            await outcome_of(engine, call({}))
        station.spans()
        await engine.decide("m:c1", approve=True, by="alice", user_id="u")
        async with aclosing(engine.resume("m:c1", CONTEXT)) as stream:
            assert [type(event) for event in [event async for event in stream]] == [Executed]
        decided, ran = station.exporter.get_finished_spans()
        assert (decided.name, ran.name) == ("decide bump", "execute_tool bump")
        for span in (decided, ran):
            assert span.parent is None
            assert [link.context.span_id for link in span.links] == [agent.get_span_context().span_id]
            assert span.status.status_code is StatusCode.UNSET
            assert "alice" not in str(dict(span.attributes or {}))
        # The station is the whole run's: other tools have waited before.
        (wait,) = [
            point
            for point in station.points("calljournal.gate.wait")
            if (point.attributes["status"], point.attributes["tool"]) == ("approved", "counter")
        ]
        assert wait.count >= 1
        assert set(wait.attributes) == {"status", "tool", "action"}


def stuck(station: Station) -> dict[tuple[str, str], int]:
    """Return the last value of the metric, by what it is of."""
    points = station.points("calljournal.stuck")
    return {(point.attributes["status"], point.attributes["outcome"]): point.value for point in points}


async def test_the_journal_is_measured_when_it_is_reconciled(station: Station, journal_url: str) -> None:
    async with traced(journal_url, metadata={"require_approval": True}) as engine:
        for state, call_id in (("open", "o1"), ("open", "o2"), ("awaiting_approval", "a1"), ("executed", "e1")):
            await staged_call(engine, state, call_id, worker="gone")
        await outcome_of(engine, call({}))
        async with engine.log.subscribe("follower") as followed:
            for _ in range(3):
                await anext(followed)
        await hold_long(engine)
        later(engine, 8 * DAY)
        before = stuck(station)
        await engine.reconcile(dry_run=True)
        assert stuck(station) == before
        await engine.reconcile()
        assert stuck(station) == {
            ("proposed", "orphaned"): 2,
            ("proposed", "expired"): 2,
            ("proposed", "timed_out"): 0,
            ("proposed", "held"): 0,
            ("proposed", "resumable"): 0,
            ("proposed", "unresumed"): 0,
            ("executed", "unconfirmed"): 1,
        }
        (waiting,) = station.points("calljournal.pending_approvals")
        assert (waiting.value, dict(waiting.attributes)) == (0, {})
        (lag,) = station.points("calljournal.projection.lag")
        assert (lag.value, dict(lag.attributes)) == (await engine.log.head() - 3, {"projection": "follower"})
        denied = [
            point
            for point in station.points("calljournal.gate.wait")
            if (point.attributes["status"], point.attributes["tool"]) == ("denied", "counter")
        ]
        assert denied
        for name in ("stuck", "pending_approvals", "projection.lag"):
            assert "gone" not in str([dict(point.attributes) for point in station.points(f"calljournal.{name}")])


async def test_the_queue_is_empty_in_the_end(station: Station, sqlite_url: str) -> None:
    async with traced(sqlite_url) as engine:
        async with anyio.create_task_group() as tasks:
            for number in range(200):
                tasks.start_soon(events_of, engine, call({}, call_id=f"c{number}"))
        (depth,) = station.points("calljournal.queue.depth")
        assert (depth.value, dict(depth.attributes)) == (0, {})
