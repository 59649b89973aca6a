"""Who follows a run sees every record after it was written, and an event's trace context."""

from __future__ import annotations

import json

import pytest

from dig import Output
from dig.codec import decode, encode, to_row
from dig.errors import DecisionError, RequestError
from dig.records import Emit
from tests.helpers import Recorder, Sees, Stage, answer

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


def test_a_run_that_has_begun_cannot_be_followed() -> None:
    stage = Stage()
    stage.give("a")
    with pytest.raises(RequestError, match="first record"):
        stage.monitor.follow(Recorder())


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
