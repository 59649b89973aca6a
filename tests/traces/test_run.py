"""A recorded run, read back: what it says of events and activations is what the graph has."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from dig.detectors import standard
from dig.detectors.finding import Finding
from dig.detectors.watch import Watch
from dig.errors import RuleError, TraceError
from dig.graph.codec import decode
from dig.graph.records import Deliver, Emit, FindingRow, Leave
from dig.traces.run import RecordedRun, recorded_rows
from tests.histories import arrive, deliver, emit, end, row, start, trace, turn
from tests.random_traces import random_trace
from tests.traces.runs import store

LOST = trace(
    arrive(0, "e0", None, "a"),
    turn(1, "v1", "a", "e1", e0="consume"),
    arrive(1, "e1", "v1", "b"),
    row(2, "leave", agent="b"),
    row(3, "finding", pattern="OE", stage=None, subject={"event": "e1"}, evidence={}),
    row(3, "heal", finding=8, action="reroute", event="e1", to=["c"], note="take it"),
    row(3, "redirect", event="e1", to=["c"]),
    deliver(4, "e1", "c"),
    start(5, "v2", "c", "e1"),
    end(6, "v2", e1="consume"),
    limits={"oe_window_s": 0.5},
)


@pytest.mark.parametrize("seed", range(12))
def test_events_and_activations_are_those_of_the_graph(seed: int) -> None:
    """Fates, outputs, generators and consumption agree with the graph, whatever happens."""
    run = RecordedRun(map(decode, random_trace(random.Random(seed), length=120)))
    h = run.graph.history
    assert list(run.events) == list(h.event_ids)
    assert list(run.activations) == list(h.activation_ids)
    ended = [one for one in run.activations.values() if one.end is not None]
    cut = max(ended, key=lambda one: one.end.t if one.end else 0, default=None)
    for v, one in enumerate(run.activations.values()):
        assert one.agent == h.agent(v) == run.agent_of(one.id)
        outputs = [h.event_ids[n] for n in h.outputs(v)]
        assert [event.id for event in run.outputs(one)] == outputs
        is_cut = one is cut  # a trace may stop before the last output of its last end
        assert list(one.outputs[: len(outputs)] if is_cut else one.outputs) == outputs
        assert run.fates(one.id).items() >= one.fates.items()
        assert (one.end is not None) == (h.t_end[v] >= 0)
    for event in run.events.values():
        held = run.graph.event(event.id)
        assert event.by == held.by
        assert event.is_work == held.work
        assert event.reroutes or not held.reroutes
        assert held.consumed or not event.consumed_by
        assert run.is_orphaned(event.id) == (event.id in run.graph.orphans())


def test_a_lost_event_is_followed_to_its_end() -> None:
    """Who left with it, since when no agent could reach it, and what healing did about it."""
    run = RecordedRun(map(decode, LOST))
    event = run.events["e1"]
    leave = run.records[7]
    assert isinstance(leave, Leave)
    assert run.left_with(leave, "e1")
    assert not run.left_with(leave, "e0")
    assert run.orphaned_t("e1") == run.leaves["b"] == 7
    assert not run.is_orphaned("e1")
    assert [row.action for row in run.heals_of(run.findings[0].t)] == ["reroute"]
    assert event.consumed_by == ("v2",)
    assert event.agent == "a"
    assert [to for to, _ in event.arrivals] == ["b", "c"]
    assert run.ancestors("e1") == {"e1", "e0"}
    consumption = run.consumption(event)
    assert consumption is not None
    assert consumption.activation == "v2"


def test_a_moment_is_found_by_its_time() -> None:
    """The first record that is not before it; the last one, if all are."""
    run = RecordedRun(map(decode, LOST))
    assert run.at(0) == 0
    assert run.at(2_500_000) == 8
    assert run.at(99_000_000) == run.last.t


def test_a_trace_is_checked_as_it_is_read(tmp_path: Path) -> None:
    """The line that breaks a rule is named; records in hand are checked if a watch is given."""
    broken = trace(emit(0, "e0", None, "a"), deliver(0, "e0", "b"))
    with pytest.raises(TraceError, match=":3: "):
        RecordedRun.read(store(tmp_path / "t.dig.jsonl", broken))
    with pytest.raises(RuleError):
        RecordedRun(map(decode, broken), Watch(()))


def test_detectors_look_at_the_run_while_it_is_read(tmp_path: Path) -> None:
    """What they find is kept beside what the trace tells of."""
    path = store(tmp_path / "t.dig.jsonl", LOST)
    run = RecordedRun.read(path, detectors=standard())
    assert [finding.pattern for finding in run.found] == ["OE"]
    assert not RecordedRun.read(path).found
    assert {type(record) for record in run.records} >= {Emit, Deliver}


def test_equal_findings_get_their_rows_in_order() -> None:
    """A finding without a row gets none, and a row without a finding is left over."""
    evidence = {"a": [1], "b": None}
    found = [Finding("X", t, t, {"event": "e"}, evidence) for t in (1, 3, 5)]
    other = FindingRow(6, 6, "X", None, {"event": "f"}, evidence)
    rows = [FindingRow(t, t, "X", None, {"event": "e"}, {"b": None, "a": [1]}) for t in (2, 4)]
    assert recorded_rows(found, [*rows, other]) == ([*rows, None], [other])
    assert recorded_rows(found, []) == ([None] * 3, [])


def test_a_stored_run_reads_its_records_again(tmp_path: Path) -> None:
    """A run that stays in its file is as if it were in memory; a changed file is told."""
    path = store(tmp_path / "lost.dig.jsonl", LOST)
    kept = RecordedRun.read(path, payloads=True)
    stored = RecordedRun.read(path, payloads=True, stored=True)
    assert [*stored.records] == kept.records
    assert len(stored.records) == len(kept.records)
    assert stored.records[-1] == kept.records[-1] == stored.last
    assert stored.records[2:5] == kept.records[2:5]
    payloads = [[event.payload for event in run.events.values()] for run in (kept, stored)]
    assert payloads[0] == payloads[1]
    with pytest.raises(IndexError):
        _ = stored.records[len(kept.records)]
    path.write_text(path.read_text()[20:])
    with pytest.raises(TraceError, match=":1: has changed since it was read"):
        list(stored.records)
