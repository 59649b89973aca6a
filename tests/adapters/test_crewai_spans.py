"""Spans of crews: those that CrewAI makes of itself, and those of OpenInference's listener."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context
from pathlib import Path
from typing import Any

import pytest

from . import crewai_teams as teams  # first: it switches off what CrewAI sends

# isort: split
from crewai.events import crewai_event_bus
from crewai.tools import tool as as_tool
from google.protobuf.json_format import MessageToJson
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

import dig
from dig.detectors import standard
from dig.detectors.watch import Watch
from dig.traces.interchange.imports import import_file

from .crewai_teams import agent, crew, says, task, uses
from .harness import Script
from .test_crewai import early

pytestmark = teams.ITS_OWN


@contextmanager
def own_spans(exporter: InMemorySpanExporter) -> Iterator[None]:
    """Spans of CrewAI itself; older versions make none."""
    tracing = pytest.importorskip("crewai.telemetry.tracing")
    with tracing.telemetry_session("kickoff", "crew", [exporter]):
        yield


@contextmanager
def openinference(exporter: InMemorySpanExporter, **options: Any) -> Iterator[None]:
    """Spans that OpenInference makes of CrewAI's events, or else of CrewAI's methods."""
    package = pytest.importorskip("openinference.instrumentation.crewai")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("OTEL_SDK_DISABLED", raising=False)
        provider = TracerProvider(ALWAYS_ON)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor = package.CrewAIInstrumentor()
    options = {"use_event_listener": True, **options}
    instrumentor.instrument(tracer_provider=provider, **options)
    try:
        yield
        crewai_event_bus.flush()
    finally:
        instrumentor.uninstrument()


def healthy(script: Script) -> Any:
    """Each of two agents is asked once, and the next task has what came of it."""
    b, c = (agent(script, name, says(f"{name} done")) for name in "bc")
    replies = teams.asks("b", "x"), teams.asks("c", "y"), says("a done")
    first = agent(script, "a", *replies, allow_delegation=True)
    return crew(task("find it", first), task("write it", c), agents=[b])


def looping(script: Script) -> Any:
    """A tool asks another agent the same, whatever it is given."""
    inner = agent(script, "inner", says("inner done"))

    @as_tool("look")  # type: ignore[untyped-decorator]
    def look(text: str) -> str:
        """Look something up."""
        return str(inner.kickoff("the first letter").raw)

    looks = [uses("look", text=f"letter {number}") for number in range(12)]
    first = agent(script, "a", *looks, says("sorted"), tools=[look], max_iter=20)
    return crew(task("sort them", first), agents=[inner])


def patterns(records: Any) -> set[str]:
    watch = Watch(standard())
    return {str(finding.pattern) for record in records for finding in watch.feed(record)}


def judged(build: Callable[[Script], Any], spans: Any, path: Path) -> tuple[set[str], set[str]]:
    """The patterns of a kickoff that is watched, and those of its spans."""
    exporter = InMemorySpanExporter()
    built = dig.wrap(build(Script()), mode="observe")

    def kick_off() -> None:
        with spans(exporter):
            with suppress(ValueError):
                built.kickoff()
            for thread in threading.enumerate():  # spans are exported when they end
                if thread.name == "background":
                    thread.join()

    Context().run(kick_off)  # without spans and events of tests before
    live = {finding.pattern for finding in dig.session_of(built).findings}
    dig.unwrap(built)
    path.write_text(MessageToJson(encode_spans(exporter.get_finished_spans())))
    return live, patterns(import_file(path).records)


@pytest.mark.parametrize("spans", [own_spans, openinference])
@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (healthy, set()), (looping, {"LOOP", "LIVELOCK"}), (early, {"ET"}),
        (teams.failing, {"FAIL"}), (teams.raising, {"FAIL"}),
    ],
)  # fmt: skip
def test_its_spans_have_the_findings_of_the_monitor(
    build: Any, expected: set[str], spans: Any, tmp_path: Path
) -> None:
    assert judged(build, spans, tmp_path / "spans.json") == (expected, expected)


def test_without_the_listener_no_span_tells_who_was_asked(tmp_path: Path) -> None:
    """OpenInference's wrappers make a span of `Task._execute_core` alone: an agent that another
    asks has no span, so that nothing but FAIL of a whole task can be seen."""

    @contextmanager
    def wrappers(exporter: InMemorySpanExporter) -> Iterator[None]:
        with openinference(exporter, use_event_listener=False):
            yield

    assert judged(looping, wrappers, tmp_path / "spans.json")[1] == set()
    assert judged(teams.raising, wrappers, tmp_path / "spans.json")[1] == {"FAIL"}
