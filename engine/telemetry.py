"""Every span, attribute and metric name, in our own literals; the only module that knows OpenTelemetry.

A span is started unattached and made current only around awaits that do not yield: attached across a yield it would
leak into the consumer. Without an SDK configured nothing is made for nobody to see.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter
from typing import Any, Final, get_args

import msgspec
from opentelemetry import context as contexts
from opentelemetry import metrics, propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from engine.spool import SpoolStatistics
from engine.stuck import StuckCounts, StuckKind
from events.transitions import kind_of
from events.types import Denied, Executed, Failed, Paused, Proposed, ToolEvent

__all__ = ("CallSpan", "Caller", "Telemetry", "trace_meta")

_SCOPE = "calljournal"
_NOTHING: Final = nullcontext()
_METHOD: Final = "mcp.method.name"
_API: Final = ("opentelemetry.trace", "opentelemetry.metrics")


class Caller(msgspec.Struct, frozen=True):
    """The trace in which a call was made.

    :ivar context: what was current then; the call's span is its child, whatever is current later
    :ivar traceparent: the same in W3C form, as the log keeps it; None outside any span
    """

    context: Context
    traceparent: str | None


class CallSpan:
    """The span of one call, from "may run" (or its refusal) to "outcome appended".

    :ivar asked: the method that an MCP server was asked for; None: none was
    """

    __slots__ = ("_began", "_ended", "_span", "asked")

    def __init__(self, span: Span) -> None:
        self._span = span
        self._began = perf_counter()
        self._ended = False
        self.asked: str | None = None

    @property
    def duration(self) -> float:
        """Seconds since the span began."""
        return perf_counter() - self._began

    def current(self) -> AbstractContextManager[object]:
        """Make the span current; never around a yield of the events' generator."""
        if not self._span.is_recording():
            return _NOTHING
        return trace.use_span(self._span, end_on_exit=False, record_exception=False, set_status_on_exception=False)

    def outcome(self, event: ToolEvent) -> None:
        """Note how the call ended; what waits or was denied is control flow, no error."""
        span = self._span
        if not span.is_recording():
            return
        span.set_attribute("calljournal.status", kind_of(event))
        if event.position is not None:
            span.set_attribute("calljournal.position", event.position)
        if isinstance(event, Executed | Failed) and event.rule is not None:
            span.set_attribute("calljournal.gate.rule", event.rule)
        if (error := _error_type(event)) is not None:
            self.failed(error)

    def annotate(self, name: str, value: str | bool | int | float) -> None:
        """Note what a tool says of its call."""
        if name == _METHOD:
            self.asked = str(value)
        if self._span.is_recording():
            self._span.set_attribute(name, value)

    def failed(self, error_type: str) -> None:
        """Note that it ended in an error of this kind, of which there are few."""
        self._span.set_attribute("error.type", error_type)
        self._span.set_status(Status(StatusCode.ERROR))

    def end(self) -> None:
        """End the span, once."""
        if not self._ended:
            self._ended = True
            self._span.end()


def trace_meta() -> dict[str, str]:
    """Return the trace that is current, in the form in which a request carries it to another process."""
    meta: dict[str, str] = {}
    propagate.inject(meta)
    return meta


def _error_type(event: ToolEvent) -> str | None:
    match event:
        case Executed(status="error"):
            return "tool_error"
        case Failed(kind="exception"):
            return event.exception_type or "_OTHER"
        case Failed(kind=kind):
            return kind
        case _:
            return None


class _Audience:
    """Whether anybody listens.

    :ivar there: as of the last look; an SDK that is configured later is noticed by a call made a second after that
    """

    __slots__ = ("_look_again", "there")

    def __init__(self) -> None:
        self.there = False
        self._look_again = 0.0
        self.look()

    def look(self) -> None:
        """Look whether an SDK has been configured, at most once a second: that takes as long as a span."""
        if self.there or perf_counter() < self._look_again:
            return
        self._look_again = perf_counter() + 1.0
        providers = (trace.get_tracer_provider(), metrics.get_meter_provider())
        # The API's own providers do nothing.
        self.there = not all(type(each).__module__.startswith(_API) for each in providers)


class Telemetry:
    """The engine's instruments.

    :ivar queued: gives how many appends wait for the log's writer
    """

    def __init__(self) -> None:
        self.queued: Callable[[], int] = int
        self._audience = _Audience()
        self._tracer = trace.get_tracer(_SCOPE)
        self._propagator = TraceContextTextMapPropagator()
        meter = metrics.get_meter(_SCOPE)
        self._duration = meter.create_histogram("gen_ai.execute_tool.duration", unit="s")
        self._asked = meter.create_histogram("mcp.client.operation.duration", unit="s")
        self._wait = meter.create_histogram("calljournal.gate.wait", unit="s")
        self._transitions = meter.create_counter("calljournal.transitions")
        self._append_duration = meter.create_histogram("calljournal.append.duration", unit="s")
        self._batch_size = meter.create_histogram("calljournal.append.batch_size")
        self._conflicts = meter.create_counter("calljournal.append.conflicts")
        self._queue = meter.create_up_down_counter("calljournal.queue.depth")
        self._queue_told = 0
        self._stuck = meter.create_gauge("calljournal.stuck")
        self._pending = meter.create_gauge("calljournal.pending_approvals")
        self._spool_depth = meter.create_gauge("calljournal.spool.depth")
        self._spool_oldest = meter.create_gauge("calljournal.spool.oldest", unit="s")
        self._spool_parked = meter.create_gauge("calljournal.spool.parked")
        self._lag = meter.create_gauge("calljournal.projection.lag", unit="{event}")

    def spooled(self, statistics: SpoolStatistics) -> None:
        """Note what waits on this machine for the journal to come back."""
        if self._audience.there:
            self._spool_depth.set(statistics.depth)
            self._spool_oldest.set(statistics.oldest)
            self._spool_parked.set(statistics.parked)

    @property
    def heard(self) -> bool:
        """Whether anybody listens, as of the last look."""
        self._audience.look()
        return self._audience.there

    def caller(self) -> Caller:
        """Return the trace that is current now."""
        self._audience.look()
        context = contexts.get_current()
        # An empty context, as it is outside of any trace, need not be asked for its span.
        if not context or not trace.get_current_span(context).get_span_context().is_valid:
            return Caller(context, None)
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, context)
        return Caller(context, carrier.get("traceparent"))

    def start(self, proposed: Proposed, caller: Caller, description: str, resumed: bool = False) -> CallSpan:
        """Start the span of a call that may run: a child of its caller's; resumed, linked to its proposal's."""
        if not self._audience.there:
            return CallSpan(trace.INVALID_SPAN)
        attributes = _attributes(proposed)
        attributes["calljournal.gate.decision"] = "allow"
        if description:
            attributes["gen_ai.tool.description"] = description
        name = f"execute_tool {proposed.llm_name}"
        links = self._links(proposed) if resumed else ()
        return CallSpan(self._tracer.start_span(name, caller.context, SpanKind.INTERNAL, attributes, links))

    def not_run(self, proposed: Proposed, event: ToolEvent, caller: Caller, began: int) -> None:
        """Note a call that did not come to run: one whole span, from ``began`` (Unix nanoseconds) until now."""
        attributes = _attributes(proposed)
        if isinstance(event, Paused | Denied):
            attributes["calljournal.gate.decision"] = "pause" if isinstance(event, Paused) else "deny"
            attributes["calljournal.gate.rule"] = event.rule or ""
        name = f"execute_tool {proposed.llm_name}"
        span = CallSpan(self._tracer.start_span(name, caller.context, SpanKind.INTERNAL, attributes, start_time=began))
        span.outcome(event)
        span.end()

    def decided(self, proposed: Proposed, event: ToolEvent, waited: float, caller: Caller, began: int) -> None:
        """Note a person's decision: one whole span linked to the proposal's, and how long the call waited (seconds)."""
        attributes = _attributes(proposed)
        del attributes["gen_ai.operation.name"]
        attributes["calljournal.gate.decision"] = "deny" if isinstance(event, Denied) else "allow"
        name = f"decide {proposed.llm_name}"
        links = self._links(proposed)
        span = CallSpan(
            self._tracer.start_span(name, caller.context, SpanKind.INTERNAL, attributes, links, start_time=began)
        )
        span.outcome(event)
        span.end()
        self._wait.record(waited, _labels(event))

    def _links(self, proposed: Proposed) -> tuple[Link, ...]:
        if proposed.traceparent is None:
            return ()
        carrier = {"traceparent": proposed.traceparent}
        origin = trace.get_current_span(self._propagator.extract(carrier, Context())).get_span_context()
        return (Link(origin),) if origin.is_valid else ()

    def ran(self, event: ToolEvent, span: CallSpan) -> None:
        """Note how long a call took that ran, and how it ended."""
        if not self._audience.there:
            return
        seconds = span.duration
        outcome = event.status if isinstance(event, Executed) else _error_kind(event)
        self._duration.record(seconds, {**_labels(event), "outcome": outcome})
        if span.asked is not None:
            error = _error_type(event)
            labels = {_METHOD: span.asked, "gen_ai.tool.name": event.action_name}
            asked = event.duration if isinstance(event, Executed) else seconds
            self._asked.record(asked, labels if error is None else {**labels, "error.type": error})

    def transition(self, event: ToolEvent) -> None:
        """Count an appended event."""
        if self._audience.there:
            self._transitions.add(1, _labels(event))

    def batch(self, size: int, seconds: float, refused: int) -> None:
        """Note one transaction of the log's writer."""
        self._append_duration.record(seconds)
        self._batch_size.record(size)
        if refused:
            self._conflicts.add(refused)
        if self._audience.there:
            # What has changed, so that the engines of one process add up.
            queued = self.queued()
            self._queue.add(queued - self._queue_told)
            self._queue_told = queued

    def stuck(self, counts: StuckCounts) -> None:
        """Note how many calls the last reconciliation found, of each kind, those that it closed included."""
        for kind in get_args(StuckKind):
            status = "executed" if kind == "unconfirmed" else "proposed"
            self._stuck.set(getattr(counts, kind), {"status": status, "outcome": kind})

    def pending(self, approvals: int) -> None:
        """Note how many calls wait for a person."""
        self._pending.set(approvals)

    def lag(self, reader: str, events: int) -> None:
        """Note how many positions a read model, or another named subscription, has before it."""
        self._lag.set(events, {"projection": reader})


def _attributes(proposed: Proposed) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": proposed.llm_name,
        "gen_ai.tool.call.id": proposed.call_id,
        "gen_ai.tool.type": "function",
        "calljournal.key": proposed.key,
    }
    if proposed.conversation_id is not None:
        attributes["gen_ai.conversation.id"] = proposed.conversation_id
    if proposed.agent_id is not None:
        attributes["gen_ai.agent.id"] = proposed.agent_id
    return attributes


def _labels(event: ToolEvent) -> dict[str, str]:
    # A name that leads to no tool is the model's own making: there is no end of those.
    known = event.tool_id is not None
    return {
        "status": kind_of(event),
        "tool": event.tool_name if known else "unknown",
        "action": event.action_name if known else "unknown",
    }


def _error_kind(event: ToolEvent) -> str:
    return event.kind if isinstance(event, Failed) else kind_of(event)
