"""What OpenTelemetry exports in a test: the process's one tracer and one meter."""

from __future__ import annotations

from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

__all__ = ("Station",)


class Station:
    """What was exported: spans, and metrics."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        trace.set_tracer_provider(provider)
        metrics.set_meter_provider(MeterProvider(metric_readers=[self.reader]))
        self.tracer = trace.get_tracer("the agent")

    def spans(self) -> list[ReadableSpan]:
        """Return the finished spans of calls since the last time."""
        found = [span for span in self.exporter.get_finished_spans() if span.name.startswith("execute_tool")]
        self.exporter.clear()
        return found

    def points(self, name: str) -> list[Any]:
        """Return the data points of one metric."""
        data = self.reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def all_of_it(self) -> str:
        """Return every finished span and every metric, with all that is in them, as text."""
        data = self.reader.get_metrics_data()
        spans = [span.to_json() for span in self.exporter.get_finished_spans()]
        return "\n".join([*spans, "" if data is None else data.to_json()])
