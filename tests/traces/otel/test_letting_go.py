"""A session that lets go of history: what is exported of it is the same, and memory is flat."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

import dig
from dig import Finding, InteractionGraph, Output, Record
from dig.monitor.sinks import Eviction
from dig.runtime import simulate
from dig.traces.otel import instrument
from dig.traces.otel.content import Content
from dig.traces.otel.follow import Follower
from dig.traces.otel.items import Item, Span
from dig.traces.otel.mapping import Mapping
from tests.helpers import Sees, Stage, answer, flag, on_emit, out, rows
from tests.retaining import KEPT, comparable, letting_go
from tests.schedules import Schedule

from .test_follow import ORIGIN, Broken, Kept
from .test_mapping import FAR


class Exported:
    """What is exported of a run, once with its evictions and once without."""

    def __init__(self) -> None:
        self.mappings = [Mapping(ORIGIN, Content(payloads=True)) for _ in range(2)]
        self.items: list[list[Item]] = [[], []]
        self.evictions = 0

    def __call__(self, record: Record) -> None:
        for mapping, items in zip(self.mappings, self.items, strict=True):
            items += mapping.feed(record)

    def evicted(self, eviction: Eviction) -> None:
        self.mappings[0].evict(eviction)
        self.evictions += 1


def serve(stage: Stage, count: int) -> None:
    for _ in range(count):
        stage.give()
        stage.turn("a", out("b"))
        stage.turn("b", answer())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("keep", KEPT)
def test_what_is_exported_is_the_same(keep: int) -> None:
    """Every span, log record and measurement of random sessions, with all their content."""
    evictions = 0
    for number in range(0, 40, 2):
        schedule = Schedule(number, "simulator", frozenset(), keep=keep, limit_s=6.0)
        exported = Exported()
        with letting_go(schedule.run()) as lets:
            run = lets.run
            simulate(run.team, run.problem, setup=run.setup, script=run.script, sink=exported)
        short, full = map(comparable, exported.items)
        assert short == full
        evictions += exported.evictions
    assert evictions >= 10


def test_what_is_kept_follows_what_is_open() -> None:
    """After hundreds of requests nothing is left of those that were answered or lost."""
    stage, exported = Stage(session=True, keep=20), Exported()
    stage.monitor.follow(exported)
    for _ in range(200):
        serve(stage, 1)
        stage.give("")  # to nobody: lost
        stage.clock.now += 600.0
    short, full = exported.mappings
    for mapping, is_short in ((short, True), (full, False)):
        tree, work = mapping._tree, mapping._work
        kept = (tree._segments, tree._began, tree._emitted, work._messages, work._held)
        assert all((len(one) < 60) == is_short for one in kept)
    assert short._graph.history.rows < 100 < 800 < full._graph.history.rows


def test_findings_that_healing_cannot_refer_to_any_more_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the graph of the session forgets them."""
    monkeypatch.setattr("dig.graph.retention.MOST_FINDINGS", 5)
    stage, exported = Stage(session=True, keep=20, detectors=[Sees(on_emit)]), Exported()
    stage.monitor.follow(exported)
    serve(stage, 50)
    short, full = (mapping._tree._findings for mapping in exported.mappings)
    assert len(short) < 30 and len(full) == 150


def test_an_activation_that_outlives_what_came_after_it_is_linked_to() -> None:
    """The span that made an event keeps its place as long as the event can be consumed."""
    stage, exported = Stage("abcd", session=True, keep=0), Exported()
    stage.monitor.follow(exported)
    stage.monitor.inject(Output("?", ("c",), "problem", traceparent=FAR))
    stage.turn("c", out("d"))
    stage.clock.now = 7200.0  # in the next segments, which are other traces
    serve(stage, 100)
    stage.turn("d", answer())
    links = [_span(items, "a202").links for items in exported.items]
    assert links[0] == links[1]
    assert (links[0][0].trace_id, links[0][0].span_id) == (
        ORIGIN.trace_id(0), ORIGIN.activation("a1"),
    )  # fmt: skip


def test_a_finding_about_what_is_gone_has_no_link_to_it() -> None:
    """A detector of one's own may name anything; where its span stood is not known any more."""

    def recalls(graph: InteractionGraph, record: Record) -> list[Finding]:
        return [flag(record, activation="a1")] if getattr(record, "event", "") == "e300" else []

    stage, exported = Stage(session=True, keep=0, detectors=[Sees(recalls)]), Exported()
    stage.monitor.follow(exported)
    serve(stage, 101)
    short, full = (_span(items, "dig.finding SEEN") for items in exported.items)
    assert [link.attributes["dig.id"] for link in full.links] == ["a1"] and not short.links
    assert full.attributes == short.attributes


def test_a_run_that_is_over_tells_of_all_events_and_activations() -> None:
    """Those that are gone count."""
    stage, exported = Stage(session=True, keep=0), Exported()
    stage.monitor.follow(exported)
    serve(stage, 40)
    stage.monitor.finish("stopped")
    about = _span(exported.items[0], "invoke_workflow run").attributes
    assert (about["dig.events.total"], about["dig.activations.total"]) == (120, 80)


# --- while it goes on ---


@pytest.mark.parametrize("keep", [0, 40])
def test_the_live_export_lets_go_too(keep: int) -> None:
    """Through queue and SDK: the same spans as from a session that keeps all."""
    told = []
    for kept in (keep, None):
        providers, stage = Kept(), Stage(session=True, keep=kept)
        follower = instrument(
            stage.monitor, tracer_provider=providers.tracer, meter_provider=providers.meter,
            logger_provider=providers.logger, origin=ORIGIN,
        )  # fmt: skip
        serve(stage, 200)
        follower.close()
        assert (follower.missed, follower.fault) == (0, "")
        told.append([span.to_json() for span in providers.exporter.get_finished_spans()])
        assert follower._mapping is not None
        assert (follower._mapping._graph.history.rows < 200) == (kept is not None)
    assert told[0] == told[1] and len(told[0]) == 401


def test_the_sink_of_a_wrapped_team_is_told() -> None:
    """`dig.wrap(..., sink=...)` takes a follower, which stays as short as the session."""
    exported = Exported()

    async def ann(question: str) -> str:
        return question

    async def ask(team: dict[str, Any]) -> None:
        for _ in range(100):
            await team["ann"]("?")

    team = dig.wrap({"ann": ann}, keep=5, sink=exported)
    anyio.run(ask, team)
    dig.unwrap(team)
    assert exported.evictions > 3 and exported.items[0] == exported.items[1]
    short, full = (mapping._graph.history.rows for mapping in exported.mappings)
    assert short < 60 and full == 300


def test_what_the_writer_remembers_of_agents_and_segments_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Guests without end have one tracer, and only the latest traces are remembered."""
    monkeypatch.setattr("dig.traces.otel.writer.MOST_TRACES", 5)
    kept, stage = Kept(), Stage(session=True, keep=0)
    follower = instrument(stage.monitor, tracer_provider=kept.tracer)
    for number in range(20):
        guest = f"guest {number}"
        stage.monitor.join(guest)
        stage.monitor.inject(Output("?", (guest,)))
        stage.turn(guest)
        stage.monitor.leave(guest)
        stage.clock.now += 3600.0
    follower.close()
    assert len(kept.exporter.get_finished_spans()) == 40
    assert len(follower._writer._tracers) == 1 and len(follower._writer._flags) == 5


def test_sweeps_do_not_pile_up_where_no_records_are_taken() -> None:
    """After a gap nothing is exported any more, and nothing is put aside for it."""
    stage, writer = Stage(session=True, keep=0), Broken()
    follower = Follower(lambda seconds: writer, ORIGIN, room=5)
    follower.attach(stage.monitor)
    serve(stage, 100)
    assert follower._late > 500 and len(follower._evictions) <= 5
    writer.gate.set()
    follower.close()
    assert len(stage.sink) - 10 <= follower.missed <= len(stage.sink) - 5
    assert follower.fault == ""


def test_a_sweep_that_fails_stops_the_export_and_not_the_run() -> None:
    """As a record does that cannot be exported; what was not exported is counted."""
    kept, stage = Kept(), Stage(session=True, keep=0)
    follower = Follower(kept.writer, ORIGIN)
    follower.attach(stage.monitor)
    follower.evicted(Eviction(0, 0, None, frozenset()))  # type: ignore[arg-type]
    serve(stage, 20)
    follower.close()
    assert "TypeError" in follower.fault
    assert follower.missed >= len(stage.sink) - 1
    assert not rows(stage.sink, "incident")


def _span(items: list[Item], name: str) -> Span:
    """The span of an activation, or with a name."""
    spans = [item for item in items if isinstance(item, Span) and not item.is_open]
    return next(s for s in spans if name in (s.attributes.get("dig.activation.id"), s.name))
