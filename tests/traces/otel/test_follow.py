"""Live export: what follows a run, and how an agent's own spans join in."""

from __future__ import annotations

import logging
import threading
from typing import Any

import anyio
import pytest
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

from dig import Output
from dig.detectors import standard
from dig.errors import RequestError, SettingsError
from dig.runtime import Bus, Decision, NewEvent, Setup, View
from dig.traces.otel import Follower, current_traceparent, instrument
from dig.traces.otel.ids import Origin
from dig.traces.otel.writer import Writer
from tests.helpers import Stage, answer, backends, out

ORIGIN = Origin("run-1", 1_000_000_000)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return backends()[request.param]()


class Kept:
    """Providers of the SDK that keep what they are given."""

    def __init__(self, **settings: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracer = TracerProvider(shutdown_on_exit=False, **settings)
        self.tracer.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meter = MeterProvider([self.reader], shutdown_on_exit=False)
        make: Any = InMemoryLogRecordExporter
        self.log_exporter = make()
        self.logger = LoggerProvider(shutdown_on_exit=False)
        self.logger.add_log_record_processor(SimpleLogRecordProcessor(self.log_exporter))

    def writer(self, seconds: Any = dict) -> Writer:
        return Writer(self.tracer, self.meter, self.logger, {"dig.detector.time": seconds})

    def spans(self) -> dict[str, ReadableSpan]:
        """By name; activations by id."""
        return {
            str((span.attributes or {}).get("dig.activation.id", span.name)): span
            for span in self.exporter.get_finished_spans()
        }

    def metrics(self) -> dict[str, Any]:
        data = self.reader.get_metrics_data()
        return {
            metric.name: metric.data
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        } if data else {}  # fmt: skip


def id_of(span: ReadableSpan) -> int:
    context: Any = span.get_span_context()
    return int(context.span_id)


def trace_of(span: ReadableSpan) -> int:
    context: Any = span.get_span_context()
    return int(context.trace_id)


# --- one line ---


def test_a_monitor_is_followed_from_one_line() -> None:
    """Spans, measurements and log records go to the providers that are handed in."""
    kept, stage = Kept(), Stage(detectors=standard(), stopwatch=lambda: 1.0)
    follower = instrument(
        stage.monitor, tracer_provider=kept.tracer, meter_provider=kept.meter,
        logger_provider=kept.logger, origin=ORIGIN,
    )  # fmt: skip
    stage.give("a")
    stage.turn("a", answer())
    stage.monitor.finish("submitted")
    follower.close()
    assert set(kept.spans()) == {"invoke_workflow run", "a1"}
    assert id_of(kept.spans()["a1"]) == ORIGIN.activation("a1")
    assert {"dig.events", "dig.detector.time", "dig.open_events"} <= kept.metrics().keys()
    assert len(kept.log_exporter.get_finished_logs()) == 1
    assert (follower.missed, follower.fault) == (0, "")


def test_a_run_that_has_begun_cannot_be_followed() -> None:
    """Half a run is no graph; the error comes at once, and the run goes on."""
    kept, stage = Kept(), Stage()
    stage.give("a")
    with pytest.raises(RequestError, match="first request"):
        instrument(stage.monitor, tracer_provider=kept.tracer)
    stage.turn("a", answer())


def test_a_provider_that_makes_no_ids_is_refused() -> None:
    """The default provider of a process without the SDK would lose everything silently."""
    with pytest.raises(SettingsError, match="TracerProvider"):
        instrument(Stage().monitor, tracer_provider=trace.ProxyTracerProvider())


def test_a_switched_off_sdk_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    kept, stage = Kept(), Stage()
    follower = instrument(stage.monitor, tracer_provider=kept.tracer)
    stage.give("a")
    follower.close()
    assert kept.spans() == {}
    assert follower.fault == ""


def test_each_agent_can_have_a_provider() -> None:
    """A function from agents to providers gives each agent a service of its own."""
    kept: dict[str | None, Kept] = {}

    def provider(agent: str | None) -> TracerProvider:
        return kept.setdefault(agent, Kept()).tracer

    stage = Stage()
    follower = instrument(stage.monitor, tracer_provider=provider)
    stage.give("ab")
    stage.turn("a")
    stage.turn("b")
    follower.close()
    assert {agent: list(one.spans()) for agent, one in kept.items()} == {
        None: ["invoke_workflow run"], "a": ["a1"], "b": ["a2"],
    }  # fmt: skip


def test_other_spans_of_the_provider_keep_ids_of_their_own() -> None:
    """Given ids are for our spans only, and only in the thread that makes them."""
    kept, stage = Kept(), Stage()
    follower = instrument(stage.monitor, tracer_provider=kept.tracer, origin=ORIGIN)
    stage.give("a")
    stage.turn("a")
    follower.close()
    with kept.tracer.get_tracer("dig-monitor").start_as_current_span("theirs"):
        pass
    ids = [id_of(span) for span in kept.exporter.get_finished_spans()]
    assert len(set(ids)) == 3


def test_a_sampler_that_drops_the_run_drops_all_of_it() -> None:
    """What the root is decides for all: no half traces."""
    kept, stage = Kept(sampler=ParentBased(ALWAYS_OFF)), Stage()
    follower = instrument(stage.monitor, tracer_provider=kept.tracer)
    stage.give("a")
    stage.turn("a")
    follower.close()
    assert kept.spans() == {}


# --- an agent's own spans ---


@pytest.mark.anyio
async def test_what_an_agent_traces_nests_below_its_activation() -> None:
    """Also when two act at once; and an event can carry the context of who sent it."""
    kept = Kept()
    tracer = kept.tracer.get_tracer("theirs")

    async def act(view: View) -> Decision:
        with tracer.start_as_current_span(f"chat by {view.agent} {view.turn}"):
            await anyio.sleep(0.1)
            if view.agent != "ada":
                return Decision.respond(view, NewEvent(payload="done", to=["ada"]))
        if view.turn == 1:
            return Decision.respond(view, NewEvent(payload="do it", to=["bob", "cyd"]))
        return Decision.submit(view, 1) if len(view.events) > 1 else Decision.wait()

    bus = Bus(dict.fromkeys(["ada", "bob", "cyd"], act), Setup(limit_s=10.0))
    follower = instrument(bus, tracer_provider=kept.tracer)
    with tracer.start_as_current_span("the host's request"):
        problem = Output("?", ("ada",), "problem", traceparent=current_traceparent())
        await bus.run(problem)
    follower.close()
    spans = kept.spans()
    for name in ("ada", "bob", "cyd"):
        acted = next(s for s in spans.values() if s.name == f"invoke_agent {name}")
        above = spans[f"chat by {name} 1"].parent
        assert above is not None
        assert (above.trace_id, above.span_id) == (trace_of(acted), id_of(acted))
    assert spans["a1"].links[0].context.span_id == id_of(spans["the host's request"])
    assert not trace.get_current_span().get_span_context().is_valid


def test_around_makes_the_span_current_for_a_host_of_ones_own() -> None:
    """Without our bus: enter `around` while the agent acts."""
    kept, stage = Kept(), Stage()
    follower = instrument(stage.monitor, tracer_provider=kept.tracer, origin=ORIGIN)
    stage.give("a")
    started = stage.start("a")
    with follower.around(started):
        assert current_traceparent() == (
            f"00-{ORIGIN.trace_id(0):032x}-{ORIGIN.activation('a1'):016x}-01"
        )
    stage.finish(started)
    with follower.around(started):  # it is over: nothing to nest below
        assert current_traceparent() is None
    follower.close()


# --- what goes wrong ---


class Broken(Writer):
    """Fails, or holds everything up, when it is to write."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__(TracerProvider(shutdown_on_exit=False))
        self.error = error
        self.gate = threading.Event()

    def write(self, items: Any) -> None:
        if self.error is not None:
            raise self.error
        assert self.gate.wait(60.0)
        super().write(items)


def exchange(stage: Stage, turns: int) -> None:
    """A few turns: four records each."""
    stage.give("a")
    for turn in range(turns):
        stage.turn("ab"[turn % 2], out("ba"[turn % 2]))


def test_an_export_that_fails_stops_itself_and_not_the_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Every record that was not exported is counted, and the end says so."""
    stage = Stage()
    follower = Follower(lambda seconds: Broken(OSError("no more")), ORIGIN)
    follower.attach(stage.monitor)
    exchange(stage, 3)
    with caplog.at_level(logging.WARNING):
        follower.close()
        stage.turn("b")
    assert "no more" in follower.fault
    assert follower.missed == len(stage.sink)
    assert f"{len(stage.sink) - 2} records" in caplog.text


def test_records_without_room_are_counted_and_nobody_waits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The run goes on at once; from the first gap on nothing is exported, and all is counted."""
    stage, writer = Stage(), Broken()
    follower = Follower(lambda seconds: writer, ORIGIN, room=5)
    follower.attach(stage.monitor)
    exchange(stage, 10)
    writer.gate.set()
    with caplog.at_level(logging.WARNING):
        follower.close()
    taken = len(stage.sink) - follower.missed
    assert 5 <= taken <= 10
    assert "came too fast" in caplog.text


def test_in_virtual_time_a_run_waits_for_room() -> None:
    """Where waiting changes nothing, nothing is lost."""
    kept, stage = Kept(), Stage()
    follower = Follower(kept.writer, ORIGIN, room=5, may_wait=True)
    follower.attach(stage.monitor)
    exchange(stage, 30)
    follower.close()
    assert follower.missed == 0
    stage.monitor.incident("late", None)  # nobody takes it any more, and nobody waits for that
    assert follower.missed == 1
    assert len([name for name in kept.spans() if name.startswith("a")]) == 30


def test_a_run_that_ends_closes_its_thread() -> None:
    """After the last record nothing is left to wait for."""
    kept, stage = Kept(), Stage()
    follower = Follower(kept.writer, ORIGIN)
    follower.attach(stage.monitor)
    stage.monitor.finish("stopped")
    follower._thread.join(60.0)
    assert not follower._thread.is_alive()
    follower.close()
    follower.close()
