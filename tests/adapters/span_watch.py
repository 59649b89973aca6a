"""Spans of a run beside the monitor in the same run, and the findings of both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToJson
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dig.detectors import standard
from dig.detectors.watch import Watch
from dig.graph.records import FindingRow
from dig.traces.interchange.imports import Imported, import_file

COMPARED = ("ET", "LOOP", "LIVELOCK", "FAIL")
"""The patterns that calls alone show, whoever tells of them."""

Found = list[tuple[str, str | None, str]]
"""Pattern, stage and severity of each finding, in order."""


def exporting() -> tuple[InMemorySpanExporter, TracerProvider]:
    """A place for spans, and the provider that brings them there at once."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter, provider


def instrumented(instrumentor: Any) -> Iterator[InMemorySpanExporter]:
    """The spans of a framework while an instrumentation of it is on."""
    exporter, provider = exporting()
    instrumentor.instrument(tracer_provider=provider)
    yield exporter
    instrumentor.uninstrument()


def compared(findings: Iterable[Any]) -> Found:
    """Those of the compared patterns, whether found live or in a file."""
    return [(str(f.pattern), f.stage, f.severity) for f in findings if f.pattern in COMPARED]


def watched_live(records: Iterable[Any]) -> Found:
    return compared(record for record in records if isinstance(record, FindingRow))


def watched_in_file(run: Imported) -> Found:
    watch = Watch(standard())
    return compared(finding for record in run.records for finding in watch.feed(record))


def imported(exporter: InMemorySpanExporter, folder: Path) -> Imported:
    """What `digmon import` reads from the spans."""
    path = folder / "spans.json"
    path.write_text(MessageToJson(encode_spans(exporter.get_finished_spans())))
    return import_file(path)
