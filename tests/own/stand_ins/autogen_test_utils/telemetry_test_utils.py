"""Keeps spans in memory."""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class MyTestExporter(InMemorySpanExporter):
    def get_exported_spans(self) -> list[object]:
        return [*self.get_finished_spans()]


def get_test_tracer_provider(exporter: MyTestExporter) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider
