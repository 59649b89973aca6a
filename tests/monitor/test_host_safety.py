"""What a host may expect when its team, its disk or its clock misbehaves."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from dig import Fate, Limits, Monitor, Output, Record
from dig.detectors import standard, standard_healers
from dig.graph.records import Deliver, Emit, End, FindingRow
from dig.monitor.messages import Started
from dig.monitor.sanitize import MOST_BYTES
from dig.runtime import Bus, Decision, NewEvent, Plan, Setup, View, simulate
from dig.runtime.agents import EventFate
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import read_graph
from tests.helpers import Recorder, backends

PER_CLOSED = 512
"""Bytes that an event may leave behind when nothing can happen to it any more."""


class Flood:
    """Consumes all that it has and says as much again: its buffer never grows, the run does."""

    def __init__(self, outputs: int) -> None:
        self._outputs = outputs

    def plan(self, view: View) -> Plan:
        fates = [EventFate(event=event.id, fate="consume") for event in view.events]
        made = [NewEvent(payload="x" * 100, to=[view.agent]) for _ in range(self._outputs)]
        return Plan(0.01, Decision(fates=fates, outputs=made))


class Hoard:
    """Never consumes, and says the same again and again, to itself."""

    def plan(self, view: View) -> Plan:
        return Plan(0.5, Decision(outputs=[NewEvent(payload=0, to=[view.agent])]))


class Silent:
    """Waits for ever."""

    def plan(self, view: View) -> Plan:
        return Plan(0.01, Decision())


class Answering:
    """Submits at once."""

    def plan(self, view: View) -> Plan:
        done = NewEvent(payload=len(view.team), final=True)
        fates = [EventFate(event=event.id, fate="consume") for event in view.events]
        return Plan(0.01, Decision(fates=fates, outputs=[done]))


SETUP = Setup(detectors=standard, healers=standard_healers)


def test_a_flood_ends_with_the_time_limit_and_leaves_little_of_each_event() -> None:
    """What is consumed is numbers: payloads go, and memory follows what is still open."""
    counted = [0]

    def count(record: Record) -> None:
        counted[0] += isinstance(record, Emit)

    gc.collect()
    tracemalloc.start()
    try:
        setup = Setup(limit_s=1.0)
        kept = []

        def keep(monitor: Monitor) -> list[Any]:
            kept.append((tracemalloc.get_traced_memory()[0], counted[0]))
            return []

        script = ((0.25, keep), (0.95, keep))
        result = simulate({"a": Flood(100)}, "?", setup=setup, sink=count, script=script)
    finally:
        tracemalloc.stop()
    assert result.outcome == "timeout"
    assert counted[0] > 2_500
    (before, first), (after, last) = kept
    assert last - first > 1_250
    assert (after - before) / (last - first) < PER_CLOSED


def test_healing_of_a_flood_is_bounded() -> None:
    """A team that does nothing but hoard is helped as often as the budget says."""
    limits = Limits(dl_window_s=1, mc_window_s=1, oe_window_s=1)
    setup = Setup(detectors=standard, healers=standard_healers, limits=limits, limit_s=100)
    result = simulate({"a": Hoard(), "b": Silent()}, "?", setup=setup)
    assert result.outcome == "timeout"
    assert sum(result.heals.values()) <= setup.budget.per_run


@pytest.mark.nightly
def test_a_team_of_10_000_is_told_and_answers() -> None:
    """A broadcast to all, and one who answers."""
    names = [f"agent-{i}" for i in range(10_000)]
    team: dict[str, Any] = dict.fromkeys(names, Silent())
    sink = Recorder()
    late = {**team, names[-1]: Answering()}
    result = simulate(late, Output("?", tuple(names), "problem"), setup=Setup(limit_s=5), sink=sink)
    assert sum(isinstance(row, Deliver) for row in sink) >= 10_000
    assert result.answer == 10_000


@pytest.mark.parametrize("anyio_backend", backends(), indirect=True)
@pytest.mark.anyio
async def test_what_is_too_large_ends_the_activation_and_loses_nothing() -> None:
    """The agent is told by its failure; its input stays with it, and it may do better."""

    class Large:
        async def act(self, view: View) -> Decision:
            payload = "x" * MOST_BYTES if view.turn == 1 else "small"
            fates = [EventFate(event=event.id, fate="consume") for event in view.events]
            return Decision(fates=fates, outputs=[NewEvent(payload=payload, final=True)])

    sink = Recorder()
    result = await Bus({"a": Large()}, Setup(backoff_s=1.0), sink=sink).run("?")
    assert (result.outcome, result.answer, result.failures) == ("submitted", "small", {"a": 1})
    (failed, _) = [row for row in sink if isinstance(row, End)]
    assert "go into an event" in str(failed.error)
    assert failed.fates == (Fate("e1", "delay"),)


def test_the_largest_event_is_journalled_and_read_again(tmp_path: Path) -> None:
    """To the byte: what the monitor lets in, the reader takes."""
    journal = Journal(tmp_path / "trace.dig.jsonl")
    monitor = Monitor(["a"], clock=lambda: 0.0, sink=journal)
    monitor.inject(Output("\x01" * ((MOST_BYTES - 2) // 6), ("a",)))
    journal.close()
    assert read_graph(tmp_path).event("e1").copies


@pytest.mark.parametrize("jump_s", [3600.0, 366 * 86_400.0, 1e9])
def test_a_clock_that_jumps_ahead_raises_what_is_due_once(jump_s: float) -> None:
    """A laptop that slept: each window is raised once, and the run goes on from there."""
    now, records = [0.0], list[Record]()
    monitor = Monitor(["a", "b"], clock=lambda: now[0], sink=records.append, detectors=standard())
    monitor.inject(Output("?", ("a", "b")))
    (started,) = [e for e in monitor.start("a") if isinstance(e, Started)]
    monitor.end(started.activation)
    now[0] = jump_s
    monitor.tick()
    monitor.tick()
    raised = [row.pattern for row in records if isinstance(row, FindingRow)]
    assert raised == ["DL"]
    assert monitor.start("b")
    now[0] = 1.0
    monitor.tick()
    assert monitor.now == jump_s, "and one that falls stands still"
