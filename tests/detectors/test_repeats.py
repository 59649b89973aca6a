"""What the patterns about repetition share: doublings, instances, and memory of events."""

from __future__ import annotations

import pytest

from dig.detectors import standard
from dig.detectors.patterns import repeats
from dig.detectors.patterns.repeats import EventMemory, is_doubling
from dig.detectors.watch import Watch
from dig.graph.codec import decode
from dig.graph.graph import InteractionGraph
from dig.graph.records import base_name
from tests.histories import arrive, deliver, row, start, trace, turn
from tests.oracle import Row


def test_a_repetition_is_told_whenever_it_has_doubled() -> None:
    """So a thousand equal things are ten findings."""
    assert [n for n in range(100) if is_doubling(n, 3)] == [3, 6, 12, 24, 48, 96]


@pytest.mark.parametrize(
    ("instance", "agent"),
    [
        ("a#2", "a"),
        ("a#2#3", "a#2"),
        ("#2", "#2"),
        ("a#", "a#"),
        ("a#b", "a#b"),
        ("a#2\n", "a#2\n"),
    ],
)
def test_only_a_name_with_a_number_behind_it_is_an_instance(instance: str, agent: str) -> None:
    """`NAME#` with digits at the end is the agent `NAME`; all other names are agents."""
    assert base_name(instance) == agent


def remembering(rows: list[Row]) -> EventMemory[str]:
    """A memory that is told of all events of a trace, each by its name."""
    graph, memory = InteractionGraph(), EventMemory[str]()
    for one in rows:
        graph.apply(decode(one))
        if one["kind"] == "emit":
            memory.put(graph, one["event"], one["event"])
    return memory


def used(*events: str) -> list[Row]:
    """Each event is delivered to an agent and consumed."""
    return [
        one
        for ts, event in enumerate(events)
        for one in (
            *arrive(ts, event, None, "a"),
            *turn(ts, "v" + event, "a", **{event: "consume"}),
        )
    ]


def test_of_closed_events_the_latest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory stays flat in a session; an event that is still open is never forgotten."""
    monkeypatch.setattr(repeats, "MOST_NEW", 2)
    names = [f"e{i}" for i in range(100)]
    memory = remembering(trace(arrive(0, "open", None, "b"), used(*names)))
    known = [event for event in names if memory.get(event)]
    assert memory.get("open") == "open" and known == names[-len(known) :] and 2 <= len(known) <= 10


def test_an_event_that_came_back_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sent once more, it is live, however many events are closed since."""
    monkeypatch.setattr(repeats, "MOST_NEW", 2)
    back = [row(1, "redirect", event="e1", to=["b"]), deliver(1, "e1", "b")]
    memory = remembering(trace(used("e1"), back, *[
        [{**one, "ts": 2} for one in used(f"e{i}")] for i in range(2, 100)
    ]))  # fmt: skip
    assert [memory.get(event) for event in ("e1", "e2", "e99")] == ["e1", None, "e99"]


def test_events_passed_on_too_often_at_once_stand_in_order_of_generation() -> None:
    """Whatever the order in which the decision names them."""
    back = {"y": "reroute", "x": "reroute"}
    rows = trace(
        arrive(0, "x", None, "a"),
        arrive(0, "y", None, "a"),
        passed_on(1, "v", "a", "b", *back),
        passed_on(2, "w", "b", "a", *back),
        limits={"reroute_limit": 1},
    )
    watch = Watch(standard())
    raised = [finding for one in rows for finding in watch.feed(decode(one))]
    assert [finding.subject for finding in raised] == [{"event": "x"}, {"event": "y"}]


def passed_on(ts: float, activation: str, agent: str, to: str, *events: str) -> list[Row]:
    """A turn that passes events on, named in this order, and their arrival."""
    fates = [{"event": event, "fate": "reroute", "to": [to]} for event in events]
    ended = row(ts, "end", activation=activation, fates=fates, outputs=[])
    came = [deliver(ts, event, to) for event in sorted(events)]
    return [start(ts, activation, agent, "x y"), ended, *came]
