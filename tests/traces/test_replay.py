"""Replay: the same graph and findings from the trace alone, and the same bytes again."""

from __future__ import annotations

import builtins
import json
import os
import random
import socket
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from dig import Detector, InteractionGraph, Record
from dig.detectors import standard, watch
from dig.detectors.watch import Timing, Watch
from dig.errors import DamageError, DivergenceError, ReplayError, TraceError
from dig.graph.records import FAILED, LEFT_OUT, TRIED_AGAIN, Fate, IncidentRow
from dig.monitor.messages import Output
from dig.runtime import Setup, simulate
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import read_records
from dig.traces.replay.rerun import replay, rerun
from dig.traces.replay.rewind import rewind
from tests.chaos import chaos_run

from .journals import journalled, live_states, reseal, rows_of, simple_run, state, story, write
from .mutations import damage, forge

MADE = Setup(detectors=standard).header()
ET = MADE["detectors"][0]
OWN = {"class": "mine.Own"}


@pytest.mark.parametrize("seed", range(8))
def test_the_graph_of_every_prefix_is_the_live_one(tmp_path: Path, seed: int) -> None:
    path, states = live_states(seed, tmp_path)
    graph = InteractionGraph()
    for record in read_records(path):
        graph.apply(record)
        if record.t:
            assert state(graph) == states[record.t - 1]
    assert graph.t == len(states)


@pytest.mark.parametrize("seed", range(30))
def test_the_findings_of_every_prefix_are_those_of_the_run(tmp_path: Path, seed: int) -> None:
    path = journalled(chaos_run(seed, heal=seed % 2 == 0), tmp_path)
    whole = replay(path)
    assert whole.is_same is True
    for at in range(0, whole.graph.t, 7):
        assert replay(path, at).is_same is True
        assert replay(path, at).graph.t == at


def test_findings_that_are_not_the_recorded_ones_are_told(tmp_path: Path) -> None:
    path = journalled(simple_run(22), tmp_path)
    rows = rows_of(path)
    t = next(t for t, row in enumerate(rows) if row["kind"] == "finding")
    rows[t]["pattern"] = "ET" if rows[t]["pattern"] != "ET" else "DL"
    assert replay(reseal(path, rows)).is_same is False


def test_nobody_can_tell_about_detectors_of_a_users_own(tmp_path: Path) -> None:
    assert replay(write(tmp_path, header={"detectors": [OWN]})).is_same is None


def test_a_record_that_is_not_there_cannot_be_replayed_to(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="there is no record 8; the last is 7"):
        replay(write(tmp_path), 8)


# --- run again ---


@pytest.mark.parametrize("seed", [*range(40), 92, 325])  # of two a step has nothing to do
def test_a_run_comes_out_again_byte_for_byte(tmp_path: Path, seed: int) -> None:
    path = journalled(simple_run(seed, heal=seed % 3 > 0), tmp_path)
    done = rerun(path)
    assert done.records == path.read_bytes().count(b"\n")
    assert done.is_finished


@pytest.fixture
def slow_at_times(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Has live detectors now and then work for seven seconds, or stand still for as long."""
    made, clocks, rng = Setup.monitor, {"wall": 0.0, "processor": 0.0}, random.Random()

    def wall() -> float:
        draw = rng.random()
        clocks["wall"] += 7.0 * (draw < 0.02)
        clocks["processor"] += 7.0 * (draw < 0.01)
        return clocks["wall"]

    timing = Timing(wall, lambda: clocks["processor"])

    def monitor(self: Setup, agents: Any, clock: Any, sink: Any, stopwatch: Any = timing,
                fit: Any = None) -> Any:  # fmt: skip
        return made(self, agents, clock, sink, stopwatch, fit)

    monkeypatch.setattr(Setup, "monitor", monitor)
    monkeypatch.setattr(watch, "OFF_S", 2)
    return rng.seed


def test_a_run_with_slow_detectors_comes_out_again_and_can_be_forked(
    tmp_path: Path, slow_at_times: Callable[[int], None]
) -> None:
    """They are off from the same record to the same record, live, in a replay and before a fork."""
    seen = Counter[str]()
    for seed in range(40):
        slow_at_times(seed)
        path = journalled(simple_run(seed, heal=seed % 3 > 0), tmp_path)
        records = list(read_records(path))
        slow = [row.t for row in records if isinstance(row, IncidentRow) and row.what == FAILED]
        seen.update(row.what for row in records if isinstance(row, IncidentRow))
        assert rerun(path).records == len(records)
        assert replay(path).is_same is True
        for at in {t + 1 for t in slow if t + 1 < len(records)}:
            taken: list[Record] = []
            rewind(path, at, sink=taken.append)
            assert taken[:at] == records[:at]
            seen["forks"] += 1
    assert min(seen[FAILED], seen[TRIED_AGAIN], seen["forks"]) > 5


def test_a_run_with_a_flood_of_findings_comes_out_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a minute had no room for is left out, and told of, at the same records."""
    monkeypatch.setattr(watch, "MOST_A_MINUTE", 2)
    seen = Counter[str]()
    for seed in range(30):
        path = journalled(simple_run(seed, heal=seed % 3 > 0), tmp_path)
        seen.update(row.what for row in read_records(path) if isinstance(row, IncidentRow))
        assert rerun(path).records == path.read_bytes().count(b"\n")
        assert replay(path).is_same is True
    assert seen[LEFT_OUT] > 10


def test_a_run_that_was_cut_off_comes_out_again_as_far_as_it_goes(tmp_path: Path) -> None:
    path = journalled(simple_run(22), tmp_path)
    whole = path.read_bytes().splitlines(keepends=True)
    for count in range(1, len(whole)):
        path.write_bytes(b"".join(whole[:count]))
        done = rerun(path)
        assert not done.is_finished
        assert done.records == count


@pytest.mark.parametrize("seed", range(40))
def test_a_forged_journal_stops_at_the_forged_record(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = journalled(simple_run(seed % 10 + 20), tmp_path)
    record = forge(rng, path)
    with pytest.raises(DivergenceError) as caught:
        rerun(path)
    assert caught.value.record == record
    assert caught.value.expected is not None
    assert json.loads(caught.value.expected)["t"] == record


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_journal_stops_at_the_damaged_record(tmp_path: Path, seed: int) -> None:
    path = journalled(simple_run(seed % 5 + 20), tmp_path)
    record = damage(random.Random(seed), path)
    with pytest.raises((DamageError, TraceError)) as caught:
        rerun(path)
    assert caught.value.line == record + 1


def test_it_asks_no_clock_no_randomness_no_environment_and_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = journalled(simple_run(22), tmp_path)

    def no(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("replay asked for what is no part of the trace")

    real_open = builtins.open
    for owner, name in [
        (time, "time"), (time, "monotonic"), (time, "perf_counter"), (os, "urandom"),
        (os, "getenv"), (random, "random"), (socket, "socket"), (builtins, "input"),
    ]:  # fmt: skip
        monkeypatch.setattr(owner, name, no)
    monkeypatch.setattr(os, "environ", {})
    assert builtins.open is real_open
    assert replay(path).is_same
    assert rerun(path).is_finished


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (None, "does not say what the run was made with"),
        (MADE | {"detectors": [OWN]}, "not dig's own: mine.Own"),
        (MADE | {"healers": {"X": OWN}}, "not dig's own: mine.Own"),
        (MADE | {"gates": [OWN]}, "gates cannot be asked again"),
        ({"detectors": [], "healers": {}}, "about how the run was made is wrong at gates: "),
        (MADE | {"limit_s": "x"}, "is wrong at limit_s: Input should be a valid number"),
        (MADE | {"healers": {"ET": ET}}, "EarlyTermination cannot heal"),
        (MADE | {"detectors": [ET | {"limit_s": 3}]}, "EarlyTermination cannot be made: "),
    ],
)
def test_what_cannot_be_run_again_is_refused_plainly(
    tmp_path: Path, header: Any, reason: str
) -> None:
    with pytest.raises(ReplayError, match=reason):
        rerun(write(tmp_path, header=header))


def test_parts_of_a_users_own_can_be_handed_in(tmp_path: Path) -> None:
    """They must be the ones that the run was made with."""

    class Own(Detector):
        pattern = "OWN"

        def detect(self, graph: InteractionGraph, record: Record) -> list[Any]:
            return []

    setup = Setup(detectors=lambda: [*standard(), Own()])
    run = simple_run(22)
    journal = Journal(tmp_path / "t.dig.jsonl", header=setup.header())
    simulate(run.team, run.problem, setup=setup, sink=journal)
    journal.close()
    with pytest.raises(ReplayError, match="Own"):
        rerun(journal.path)
    assert rerun(journal.path, setup).is_finished
    with pytest.raises(ReplayError, match="the run was made with"):
        rerun(journal.path, Setup(detectors=standard))


def test_what_a_session_could_name_can_be_named_again(tmp_path: Path) -> None:
    """However much of the past it kept, and whatever the setup says that it is run again with."""
    setup = Setup(detectors=standard, session=True, keep=None)
    journal = Journal(tmp_path / "t.dig.jsonl", header=setup.header())
    monitor = setup.monitor("ab", float, journal)
    for number in range(1, 30):
        monitor.inject(Output("?", ("a",), "problem"))
        monitor.start("a")
        monitor.end(f"a{number}", [Fate(f"e{2 * number - 1}", "consume")], [Output(1, final=True)])
    monitor.redirect("e1", ("b",), again="?")
    monitor.finish("stopped")
    journal.close()
    assert rerun(journal.path, replace(setup, keep=0)).is_finished


def test_a_part_that_failed_for_an_unknown_reason_is_no_divergence(tmp_path: Path) -> None:
    records = story()
    path = write(tmp_path, records, header=Setup().header())
    rows = rows_of(path)
    failed = {"ts": 0.0025, "kind": "incident", "what": "failed", "detail": {"who": "d"}}
    rows.insert(6, {**failed})
    reseal(path, [{**row, "t": t} for t, row in enumerate(rows)])
    with pytest.raises(ReplayError, match="record 6 says that a part of the monitor failed"):
        rerun(path)


def test_a_watch_over_the_trace_finds_what_replay_finds(tmp_path: Path) -> None:
    path = journalled(simple_run(22), tmp_path)
    watch = Watch(standard())
    found = [f.row() for record in read_records(path) for f in watch.feed(record)]
    assert [finding.row() for finding in replay(path).findings] == found
