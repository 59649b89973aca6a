"""Idle windows: who looks at a problem, and when."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from dig.detectors.finding import Finding
from dig.detectors.patterns.deadlock import Deadlock
from dig.detectors.patterns.missing_termination import MissingTermination
from dig.detectors.watch import Watch
from dig.graph.graph import InteractionGraph
from dig.graph.records import Deliver, Emit, End, Fate, Limits, Record, Run, Start, micros

SECOND = micros(1)


class Counting(Deadlock):
    """Counts its looks at records."""

    looks = 0

    def detect(self, graph: InteractionGraph, record: Record) -> Any:
        self.looks += 1
        return super().detect(graph, record)


class Patient(Counting):
    """Has a window of its own, of thirty seconds."""

    window = "mc_window_s"


def begin(*agents: str) -> list[Record]:
    """A run whose deadlocks are found after ten seconds, with an event for the first agent."""
    limits = Limits(dl_window_s=10, mc_window_s=30, activation_limit_s=100)
    return [
        Run(0, 0, "r", agents, limits=limits),
        Emit(1, 0, "e1", None, agents[:1], "message"),
        Deliver(2, 0, "e1", agents[0]),
    ]


def passed_round(agents: list[str], turns: int) -> Iterable[Record]:
    """An event goes round, a turn a second."""
    yield from begin(*agents)
    t = 2
    for turn in range(1, turns + 1):
        us, agent, to = turn * SECOND, agents[(turn - 1) % len(agents)], agents[turn % len(agents)]
        event, answer = f"e{turn}", f"e{turn + 1}"
        yield Start(t + 1, us, f"a{turn}", agent, (event,))
        yield End(t + 2, us, f"a{turn}", (Fate(event, "consume"),), (answer,))
        yield Emit(t + 3, us, answer, f"a{turn}", (to,), "message")
        yield Deliver(t := t + 4, us, answer, to)


def findings(detectors: list[Deadlock], records: Iterable[Record], until: int) -> list[Finding]:
    """What they raise up to a moment, beside MC, which has windows of its own."""
    watch = Watch([MissingTermination(), *detectors])
    found = [finding for record in records for finding in watch.feed(record)]
    return found + watch.advance(until)


@pytest.mark.parametrize("turns", [3, 300])
def test_a_problem_with_an_alarm_is_left_alone(turns: int) -> None:
    """However many records change how it stands: each detector looks once, and each alarm."""
    detector = Counting()
    (found,) = findings([detector], passed_round(["a", "b"], turns), micros(1000))
    assert found.us == micros(turns + 10)
    assert detector.looks <= 2 + turns // 8


def test_each_window_has_its_own_alarm() -> None:
    """Of two detectors of the same standing, one has an alarm longer than the other has."""
    hasty, patient = Counting(), Patient()
    found = findings([hasty, patient], passed_round(["a", "b"], 25), micros(1000))
    assert [finding.us for finding in found] == [micros(35), micros(55)]
    assert hasty.looks < 10


def test_an_alarm_that_a_long_turn_puts_off_comes_earlier_when_that_ends() -> None:
    """The agent with the event waits; another one works for so long, and ends with nothing done."""
    records: list[Record] = [
        *begin("a", "b"),
        Emit(3, 0, "n1", None, ("b",), "notice"),
        Deliver(4, 0, "n1", "b"),
        Start(5, 0, "a1", "b", ("n1",)),
        Start(6, 0, "a2", "a", ("e1",)),
        End(7, SECOND, "a2", (Fate("e1", "delay"),)),
        End(8, 5 * SECOND, "a1", (Fate("n1", "delay"),)),
    ]
    (found,) = findings([Counting()], records, micros(1000))
    assert found.us == micros(10)
