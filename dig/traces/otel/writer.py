"""Items into the OpenTelemetry SDK, through given providers.

The SDK makes ids of its own for every span; here they are given (`GivenIds`), so that a run
exported again is the same trace.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, cast

from opentelemetry import metrics, trace
from opentelemetry._logs import LoggerProvider, LogRecord, NoOpLoggerProvider, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import (
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TracerProvider,
)

from dig._version import __version__
from dig.errors import SettingsError

from .items import NAME, Count, Item, Level, LogItem, Span

SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000)
"""Bounds of the histograms: from a queue in memory to the patience of a person."""

MOST_TRACES = 4_096
"""The number of latest segments whose sampling is remembered: half a year, if they are hours."""

Tracers = TracerProvider | Callable[[str | None], TracerProvider]
"""A tracer provider, or one for each agent (``None``: for the monitor's own spans)."""

Observe = Callable[[], Mapping[str, float]]
"""Returns sums that only grow, by attribute value."""

_INSTRUMENTS = (
    ("counter", "dig.events", "Edges of the graph, by what was done"),
    ("counter", "dig.findings", "Findings, by pattern"),
    ("counter", "dig.heals", "Interventions, by action"),
    ("histogram", "dig.event.hold", "From the generation of an event to its first delivery"),
    ("histogram", "dig.event.wait", "From an event's delivery to the activation that consumed it"),
    (
        "histogram",
        "gen_ai.invoke_agent.duration",
        "From the start of a turn or run to its end",
    ),
    ("histogram", "gen_ai.execute_tool.duration", "From the beginning of a tool call to its end"),
    ("gauge", "dig.open_events", "Work that nobody has consumed and somebody can reach"),
    ("gauge", "dig.open_activations", "Agents at work"),
    ("gauge", "dig.buffered_events", "Events in the buffer of an agent"),
    ("gauge", "dig.open.age", "Seconds for which an agent has been at work, if it is long"),
)
_OBSERVED = {
    "dig.detector.time": ("s", "How long detectors have looked", "dig.pattern"),
    "dig.export.dropped": ("1", "What could not be exported, by signal", "dig.signal"),
}
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class GivenIds(RandomIdGenerator):
    """Hands out the ids set by the calling thread, by default random ids."""

    def __init__(self) -> None:
        """Begin without given ids."""
        self._local = threading.local()

    @contextmanager
    def giving(self, trace_id: int, span_id: int) -> Iterator[None]:
        """Give these ids to a span started in the block."""
        self._local.ids = trace_id, span_id
        try:
            yield
        finally:
            self._local.ids = None

    def generate_trace_id(self) -> int:
        """The trace id set by the thread, else a random id."""
        ids = getattr(self._local, "ids", None)
        return ids[0] if ids else super().generate_trace_id()

    def generate_span_id(self) -> int:
        """The span id set by the thread, else a random id."""
        ids = getattr(self._local, "ids", None)
        return ids[1] if ids else super().generate_span_id()


class Writer:
    """Writes items to providers, on a single thread."""

    def __init__(
        self,
        tracers: Tracers,
        meter: metrics.MeterProvider | None = None,
        logger: LoggerProvider | None = None,
        observed: Mapping[str, Observe] | None = None,
    ) -> None:
        """Prepare.

        Args:
            tracers: The provider for spans, or one for each agent.
            meter: The provider for measurements; ``None``: there are none.
            logger: The provider for log records; ``None``: there are none.
            observed: Functions that are called when metrics are read: by metric, each returns
                sums by attribute value.

        Raises:
            SettingsError: Spans of this provider cannot be given ids.
        """
        self._provider = tracers
        self._tracers: dict[str | None, tuple[trace.Tracer, GivenIds | None]] = {}
        self._logger = (logger or NoOpLoggerProvider()).get_logger(NAME, __version__)
        sdk_meter = (meter or metrics.NoOpMeterProvider()).get_meter(NAME, __version__)
        self._instruments = _instruments(sdk_meter, observed or {})
        self._flags: dict[int, TraceFlags] = {}  # trace -> whether its root was sampled
        self._open: dict[int, trace.Span] = {}  # by id: those that have begun
        self._tracer(None)

    def write(self, items: Iterable[Item]) -> None:
        """Write items in order."""
        # The SDK locks for each measurement, so equal ones are added up first.
        counts: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
        levels: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        for item in items:
            if isinstance(item, Span):
                self._span(item)
            elif isinstance(item, LogItem):
                self._log(item)
            elif isinstance(item, Count):
                counts[item.metric, item.attributes] += 1
            elif isinstance(item, Level):
                levels[item.metric, item.attributes] = item.value
            else:
                self._instruments[item.metric].record(item.seconds, dict(item.attributes))
        for (metric, attributes), number in counts.items():
            self._instruments[metric].add(number, dict(attributes))
        for (metric, attributes), value in levels.items():
            self._instruments[metric].set(value, dict(attributes))

    # --- spans and log records ---

    def _span(self, item: Span) -> None:
        span = self._open.pop(item.span_id, None)
        if span is None:
            span = self._start(item)
        else:
            span.set_attributes(item.attributes)
        if item.is_open:
            self._open[item.span_id] = span
            return
        if not span.is_recording():
            return
        for mark in item.marks:
            span.add_event(mark.name, mark.attributes, mark.ns)
        if item.error:
            span.set_status(Status(StatusCode.ERROR, item.error))
        span.end(item.end_ns)

    def _start(self, item: Span) -> trace.Span:
        tracer, ids = self._tracer(item.agent)
        links = [
            trace.Link(
                SpanContext(link.trace_id, link.span_id, link.remote, _SAMPLED), link.attributes
            )
            for link in item.links
        ]
        with ids.giving(item.trace_id, item.span_id) if ids else nullcontext():
            span = tracer.start_span(
                item.name,
                self._context(item.trace_id, item.parent_id) if item.parent_id else Context(),
                SpanKind.INTERNAL,
                item.attributes,
                links,
                item.start_ns,
            )
        if item.parent_id is None:
            # A sampler decides by the root; all spans and logs of the trace follow it.
            self._flags[item.trace_id] = span.get_span_context().trace_flags
            if len(self._flags) > MOST_TRACES:
                del self._flags[next(iter(self._flags))]
        return span

    def _log(self, item: LogItem) -> None:
        record = LogRecord(
            timestamp=item.ns,
            observed_timestamp=item.ns,
            context=self._context(item.trace_id, item.span_id),
            severity_number=SeverityNumber[item.severity],
            severity_text=item.severity,
            body=item.body,
            attributes=item.attributes,
            event_name=item.name,
        )
        self._logger.emit(record)

    def _context(self, trace_id: int, parent_id: int) -> Context:
        flags = self._flags.get(trace_id, _SAMPLED)
        return trace.set_span_in_context(span_of(trace_id, parent_id, flags), Context())

    def _tracer(self, agent: str | None) -> tuple[trace.Tracer, GivenIds | None]:
        provider = self._provider
        if isinstance(provider, TracerProvider):
            agent = None  # one for all
        tracer = self._tracers.get(agent)
        if tracer is None:
            if not isinstance(provider, TracerProvider):
                provider = provider(agent)
            sdk_tracer = provider.get_tracer(NAME, __version__)
            tracer = self._tracers[agent] = sdk_tracer, _given_ids(sdk_tracer)
        return tracer


def span_of(trace_id: int, span_id: int, flags: TraceFlags = _SAMPLED) -> trace.NonRecordingSpan:
    """A parent span, recorded elsewhere.

    Args:
        trace_id: Its trace.
        span_id: Its id.
        flags: Its trace flags; by default sampled.
    """
    return trace.NonRecordingSpan(SpanContext(trace_id, span_id, False, flags))


def _given_ids(tracer: trace.Tracer) -> GivenIds | None:
    """The id generator of a tracer, replaced by `GivenIds`."""
    if isinstance(tracer, trace.NoOpTracer):  # OTEL_SDK_DISABLED
        return None
    ids = getattr(tracer, "id_generator", None)
    if ids is None:
        raise SettingsError(
            "spans need ids of their own, and this tracer provider gives none; hand in a "
            "TracerProvider of opentelemetry.sdk.trace, or set one up for the whole process"
        )
    if not isinstance(ids, GivenIds):
        ids = cast(Any, tracer).id_generator = GivenIds()
    return ids


# --- instruments ---------------------------------------------------------------------------------


def _instruments(meter: metrics.Meter, observed: Mapping[str, Observe]) -> dict[str, Any]:
    """The written instruments, by metric; observed instruments are only made."""

    def look(
        observe: Observe, key: str, options: metrics.CallbackOptions
    ) -> list[metrics.Observation]:
        return [metrics.Observation(value, {key: name}) for name, value in dict(observe()).items()]

    for metric, observe in observed.items():
        unit, about, key = _OBSERVED[metric]
        meter.create_observable_counter(metric, [partial(look, observe, key)], unit, about)
    instruments: dict[str, Any] = {}
    for kind, metric, about in _INSTRUMENTS:
        if kind == "histogram":
            instruments[metric] = meter.create_histogram(
                metric, "s", about, explicit_bucket_boundaries_advisory=SECONDS
            )
        else:
            unit = "s" if metric == "dig.open.age" else "1"
            instruments[metric] = getattr(meter, f"create_{kind}")(metric, unit, about)
    return instruments
