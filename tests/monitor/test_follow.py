"""Who follows a run sees every record after it was written, and an event's trace context."""

from __future__ import annotations

import json
from functools import partial
from itertools import chain
from typing import Any

import pytest

from dig import InteractionGraph, Monitor, Output, Record
from dig.detectors import standard
from dig.errors import DecisionError, RequestError
from dig.graph.codec import decode, encode, to_row
from dig.graph.history import Names
from dig.graph.records import Emit, Fate, Limits
from dig.monitor.messages import Started
from dig.monitor.sinks import Eviction, FanOut
from dig.runtime.simulator import Simulation
from tests.helpers import Keeper, Recorder, Sees, Stage, answer, rows, serve
from tests.retaining import KEPT, letting_go
from tests.schedules import Schedule

CONTEXT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_follower_gets_every_record_after_it_was_written() -> None:
    """The first one too, which was written when the monitor was made."""
    stage, followed = Stage(), Recorder()
    lengths = []

    def follow(record: object) -> None:
        followed.append(record)  # type: ignore[arg-type]
        lengths.append(len(stage.sink))

    stage.monitor.follow(follow)
    stage.give("a")
    stage.turn("a", answer())
    assert followed == stage.sink
    assert lengths == list(range(1, len(stage.sink) + 1))


class AtOnce:
    """A sink that takes the records of a request at once."""

    def __init__(self, followed: list[Record]) -> None:
        self.requests: list[list[str]] = []
        self.fails = False
        self._followed = followed

    def __call__(self, record: Record) -> None:
        raise AssertionError("records come at once")

    def write(self, records: list[Record]) -> None:
        if self.fails:
            raise OSError("the disk has failed")
        assert records[0] not in self._followed
        self.requests.append([record.kind for record in records])


def test_a_sink_may_take_the_records_of_a_request_at_once_before_the_others() -> None:
    """One call a request; what it could not write no other sink is given, and no effect happens."""
    followed = Recorder()
    sink = AtOnce(followed)
    monitor = Monitor(["a", "b"], clock=lambda: 0.0, sink=FanOut(followed, sink))
    monitor.inject(Output(1, ("a",)))
    [started] = (one for one in monitor.start("a") if isinstance(one, Started))
    monitor.end(started.activation, [Fate("e1", "consume")], [Output(2, ("b",))])
    assert sink.requests == [["run"], ["emit", "deliver"], ["start"], ["end", "emit", "deliver"]]
    assert [record.kind for record in followed] == [*chain(*sink.requests)]
    sink.fails = True
    with pytest.raises(OSError, match="the disk"):
        monitor.start("b")
    assert len(followed) == 7
    assert monitor.is_over


def test_a_run_that_has_begun_cannot_be_followed() -> None:
    stage = Stage()
    stage.give("a")
    with pytest.raises(RequestError, match="first request"):
        stage.monitor.follow(Recorder())


class Repeats:
    """A follower with a graph of its own; it writes down before which record it lets go."""

    def __init__(self) -> None:
        self.graph = InteractionGraph()
        self.evictions: list[Eviction] = []

    def __call__(self, record: Record) -> None:
        self.graph.apply(record)

    def evicted(self, eviction: Eviction) -> None:
        assert eviction.t == self.graph.t
        eviction.repeat(self.graph)
        self.evictions.append(eviction)


def held_by(graph: InteractionGraph) -> dict[str, Any]:
    """All that a graph has of the past; what it only keeps to be quick is left out."""
    own = vars(graph.history).items()
    left_out = ("ended_by", "_latest_edge", "_earlier_edge")
    return {k: [*v] if isinstance(v, Names) else v for k, v in own if k not in left_out}


def test_who_follows_a_session_lets_go_with_it() -> None:
    """At the same places, with the same arguments: so its graph is that of the session."""
    stage, follower = Stage(session=True, keep=5, gates=[Keeper(["e6"], seconds=1e6)]), Repeats()
    stage.monitor.follow(follower)
    serve(stage, 100)
    assert len(follower.evictions) > 5 and follower.evictions[-1].pinned == {"e6"}
    assert held_by(follower.graph) == held_by(stage.graph)
    assert stage.graph.event_count == 200 and stage.graph.history.rows < 40


def test_what_detectors_wait_for_is_given_up_when_they_do_not() -> None:
    """A graph without detectors cannot know, so it is told: a request that is lost is kept."""
    limits = Limits(mc_window_s=50.0, oe_window_s=5.0, dl_window_s=50.0)
    stage, follower = Stage(session=True, keep=0, limits=limits, detectors=standard()), Repeats()
    stage.monitor.follow(follower)
    stage.give("")
    for _ in range(8):
        stage.wait(10.0)
        serve(stage, 5)
        assert held_by(follower.graph) == held_by(stage.graph)
        is_raised = any(row.pattern == "MC" for row in rows(stage.sink, "finding"))
        assert follower.graph.knows("e1") == (not is_raised)
    assert any("e1" in eviction.given_up for eviction in follower.evictions)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("keep", KEPT)
def test_any_session_can_be_followed_as_it_lets_go(keep: int) -> None:
    """Whatever happens in it, the graph of who follows is that of the session."""
    for number in range(100, 130):
        schedule = Schedule(number, "simulator", frozenset(), keep=keep, limit_s=6.0)
        follower = Repeats()
        with letting_go(schedule.run()) as lets:
            run = lets.run
            simulation = Simulation(run.team, run.setup, follower)
            simulation.plan(0.0, partial(Monitor.inject, output=run.problem))
            for at, happening in run.script:
                simulation.plan(at, happening)
            simulation.run()
        assert held_by(follower.graph) == held_by(simulation.host.monitor.graph)


def test_who_fails_to_let_go_is_contained() -> None:
    """It is an incident, others are told, and the run goes on."""

    class Stubborn(Recorder):
        def evicted(self, eviction: Eviction) -> None:
            raise OSError("never")

    stage, follower = Stage(session=True, keep=0, sink=Stubborn()), Repeats()
    stage.monitor.follow(follower)
    serve(stage, 50)
    assert len(rows(stage.sink, "incident")) == len(follower.evictions) > 5
    incident = rows(stage.sink, "incident")[0]
    assert incident.what == "failed" and incident.detail["who"] == "a follower"
    assert "OSError('never')" in incident.detail["what"]


def test_nobody_is_told_twice_of_the_same() -> None:
    """Between two evictions there is a record, so that who puts them aside has an end of them."""
    stage, follower = Stage(session=True, keep=0), Repeats()
    stage.monitor.follow(follower)
    serve(stage, 5)
    for _ in range(50):
        stage.wait(1.0)
    places = [eviction.t for eviction in follower.evictions]
    assert places == sorted(set(places))


def test_detectors_are_timed_by_pattern() -> None:
    """With a stopwatch, the time of each is added up; without one there is none."""
    ticks = iter(range(1000))
    detectors = [Sees(lambda graph, record: [], "ONE"), Sees(lambda graph, record: [], "TWO")]
    stage = Stage(detectors=detectors, stopwatch=lambda: float(next(ticks)))
    stage.give("a")
    looks = float(len(stage.sink))
    assert stage.monitor.detector_seconds == {"ONE": looks, "TWO": looks}
    assert Stage(detectors=detectors).monitor.detector_seconds == {}


def test_a_trace_context_stands_beside_the_payload() -> None:
    """It is in the record, in its line, and in what is read from it; an agent is not shown it."""
    stage = Stage()
    stage.monitor.inject(Output("?", ("a",), traceparent=CONTEXT))
    emit = stage.sink[1]
    assert isinstance(emit, Emit) and emit.traceparent == CONTEXT
    assert to_row(emit)["traceparent"] == CONTEXT
    assert decode(json.loads(encode(emit))) == emit
    assert stage.start("a").events[0].payload == "?"


def test_an_event_without_a_trace_context_has_no_key_for_one() -> None:
    stage = Stage()
    stage.give("a")
    assert "traceparent" not in to_row(stage.sink[1])


def test_a_trace_context_must_be_a_string() -> None:
    """In a request; in a line of somebody else's, another value is no key that we know."""
    stage = Stage()
    with pytest.raises(DecisionError, match="traceparent"):
        stage.monitor.inject(Output("?", ("a",), traceparent=7))  # type: ignore[arg-type]
    stage.give("a")
    record = decode({**to_row(stage.sink[1]), "to": ["a"], "traceparent": 7})
    assert isinstance(record, Emit) and record.traceparent is None
