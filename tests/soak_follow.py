"""Who follows a soak: a live export or a live picture, whose spans and frames are dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from io import StringIO
from typing import Any

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import (
    LogRecordExporter,
    LogRecordExportResult,
    SimpleLogRecordProcessor,
)
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from rich.console import Console

from dig import InteractionGraph, Monitor
from dig.show.terminal.live import LiveView
from dig.traces.otel.follow import Follower
from dig.traces.otel.ids import Origin
from dig.traces.otel.writer import Writer

FOLLOWERS = ("otel", "terminal")
ROOM = 200
"""Records that may wait for the export, so that they are no part of what grows."""


@dataclass
class Followed:
    """What came of it.

    Attributes:
        attach: Follows a run from its first record on.
        graph: Its own graph of the run, at the end.
        made: How many spans, or characters of pictures, were made.
        fault: What failed; empty, if nothing did.
    """

    attach: Callable[[Monitor], object] = lambda monitor: None
    graph: InteractionGraph | None = None
    made: int = 0
    fault: str = ""


@contextmanager
def following(who: str | None) -> Iterator[Followed]:
    """Somebody who follows what runs in a block."""
    if who == "otel":
        yield from _exporting()
    elif who == "terminal":
        yield from _showing()
    else:
        yield Followed()


def _exporting() -> Iterator[Followed]:
    """The export, through the providers of the SDK."""
    followed = Followed()
    tracer, logger = TracerProvider(shutdown_on_exit=False), LoggerProvider(shutdown_on_exit=False)
    tracer.add_span_processor(SimpleSpanProcessor(_NoSpans(followed)))
    logger.add_log_record_processor(SimpleLogRecordProcessor(_NoLogs()))
    meter = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)

    def writer(seconds: Any) -> Writer:
        return Writer(tracer, meter, logger, {"dig.detector.time": seconds})

    with closing(Follower(writer, Origin("soak", 0), room=ROOM, may_wait=True)) as follower:
        followed.attach = follower.attach
        yield followed
    if follower._mapping is not None:
        followed.graph = follower._mapping._graph
    followed.fault = follower.fault or (f"{follower.missed} missed" if follower.missed else "")


def _showing() -> Iterator[Followed]:
    """The live picture, on a terminal that keeps nothing."""
    followed = Followed()
    console = Console(file=_Nowhere(followed), width=100, height=30, _environ={"TERM": "xterm"})
    with LiveView(console, title="soak") as view:
        followed.attach = lambda monitor: monitor.follow(view)
        followed.graph = view._scene._graph
        yield followed
    followed.fault = view._fault


class _NoSpans(SpanExporter):
    def __init__(self, followed: Followed) -> None:
        self._followed = followed

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._followed.made += len(spans)
        return SpanExportResult.SUCCESS


class _NoLogs(LogRecordExporter):
    def export(self, batch: Sequence[Any]) -> LogRecordExportResult:
        return LogRecordExportResult.SUCCESS

    def shutdown(self) -> None:
        """Nothing is kept here."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return True


class _Nowhere(StringIO):
    """A terminal that only counts what it is to show."""

    def __init__(self, followed: Followed) -> None:
        super().__init__()
        self._followed = followed

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._followed.made += len(text)
        return len(text)
