"""Every span, attribute and metric name, in our own literals; the only module that knows OpenTelemetry.

A span is started unattached and made current only around awaits that do not yield: attached across a yield it would
leak into the consumer. Without an SDK configured everything here is OpenTelemetry's own no-op.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.propagate import inject
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from events.transitions import kind_of
from events.types import Denied, Executed, Failed, Paused, Proposed, ToolEvent

__all__ = ("CallSpan", "Telemetry")

_SCOPE = "calljournal"


class CallSpan:
    """The span of one call, from "may run" to "outcome appended"."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self._ended = False

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the span current; never around a yield of the events' generator."""
        with trace.use_span(self._span, end_on_exit=False, record_exception=False, set_status_on_exception=False):
            yield

    def outcome(self, event: ToolEvent) -> None:
        """Note how the call ended; what waits or was denied is control flow, no error."""
        span = self._span
        if event.position is not None:
            span.set_attribute("calljournal.position", event.position)
        match event:
            case Executed(status=status):
                span.set_attribute("calljournal.status", status)
                if status == "error":
                    span.set_attribute("error.type", "tool_error")
                    span.set_status(Status(StatusCode.ERROR))
            case Failed(kind=kind):
                span.set_attribute("calljournal.status", "failed")
                span.set_attribute("error.type", event.exception_type or kind)
                span.set_status(Status(StatusCode.ERROR))
            case Paused() | Denied():
                span.set_attribute("calljournal.status", kind_of(event))
            case _:
                pass

    def end(self) -> None:
        """End the span, once."""
        if not self._ended:
            self._ended = True
            self._span.end()


class Telemetry:
    """The engine's instruments."""

    def __init__(self) -> None:
        self._tracer = trace.get_tracer(_SCOPE)
        meter = metrics.get_meter(_SCOPE)
        self._duration = meter.create_histogram("gen_ai.execute_tool.duration", unit="s")
        self._transitions = meter.create_counter("calljournal.transitions")
        self._append_duration = meter.create_histogram("calljournal.append.duration", unit="s")
        self._batch_size = meter.create_histogram("calljournal.append.batch_size")
        self._conflicts = meter.create_counter("calljournal.append.conflicts")

    def traceparent(self) -> str | None:
        """Return the caller's W3C trace context, as the log keeps it; None outside any span."""
        if not trace.get_current_span().get_span_context().is_valid:
            return None
        carrier: dict[str, str] = {}
        inject(carrier)
        return carrier.get("traceparent")

    def start(self, proposed: Proposed, description: str) -> CallSpan:
        """Start the span of a call that may run."""
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": proposed.llm_name,
            "gen_ai.tool.call.id": proposed.call_id,
            "gen_ai.tool.type": "function",
            "calljournal.key": proposed.key,
            "calljournal.gate.decision": "allow",
        }
        if description:
            attributes["gen_ai.tool.description"] = description
        if proposed.conversation_id is not None:
            attributes["gen_ai.conversation.id"] = proposed.conversation_id
        if proposed.agent_id is not None:
            attributes["gen_ai.agent.id"] = proposed.agent_id
        name = f"execute_tool {proposed.llm_name}"
        return CallSpan(self._tracer.start_span(name, kind=SpanKind.INTERNAL, attributes=attributes))

    def transition(self, event: ToolEvent) -> None:
        """Count an appended event."""
        labels = {"status": kind_of(event), "tool": event.tool_name, "action": event.action_name}
        self._transitions.add(1, labels)
        if isinstance(event, Executed):
            self._duration.record(event.duration, {**labels, "outcome": event.status})

    def batch(self, size: int, seconds: float, refused: int) -> None:
        """Note one transaction of the log's writer."""
        self._append_duration.record(seconds)
        self._batch_size.record(size)
        if refused:
            self._conflicts.add(refused)
