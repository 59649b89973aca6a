"""Delivery policies in replays and forks: what they did is in the trace, and is done again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dig.errors import DivergenceError
from dig.faults.inject.fault import Fault
from dig.faults.inject.faulty_team import FaultyTeam
from dig.graph.records import Deliver, Emit, Finish, Record
from dig.lab.run_pair import lines as bytes_of
from dig.lab.run_pair import play, without_policy
from dig.runtime.setup import Setup
from dig.runtime.simulator import Simulation
from dig.tasks.run.arrange import arrange, make_task
from dig.tasks.run.crew import Crew
from dig.tasks.run.run_fork import fork
from dig.traces.journal.reader import read_records
from dig.traces.replay.rerun import rerun
from dig.traces.replay.rewind import rewind
from tests.chaos import ChaosRun, chaos_run
from tests.faults.plays import STEADY

from .forks import forked, lines, turns_before
from .journals import journalled, story, write


def policy_run(seed: int) -> ChaosRun:
    """A random run with delivery policies of all kinds, and nothing from outside."""
    run = chaos_run(seed, heal=bool(seed % 2))
    return replace(run, setup=replace(run.setup, gates=()), script=())


@pytest.mark.sampled(22)
@pytest.mark.parametrize("seed", [3, 5, 16, 28, 32, 37, 48, 53, 54, 119, 393])
@pytest.mark.parametrize("offset", range(0, 8, 2))
def test_a_run_with_policies_runs_again_and_forks_to_the_same_bytes(
    tmp_path: Path, seed: int, offset: int
) -> None:
    """Delays, escalations and expiries happen at their places, between whatever else happens."""
    run = policy_run(seed)
    path = journalled(run, tmp_path)
    parent = path.read_bytes()
    assert b'"policy"' in parent
    assert rerun(path).records == len(lines(path))
    for at in range(offset, len(lines(path)), 8):
        fork, calls = forked(path, at, run)
        assert fork.read_bytes() == parent, f"policy_run({seed}) at {at}"
        assert not set(calls) & turns_before(path, at)


@pytest.mark.parametrize("kind", ["drop", "delay"])
def test_a_trace_that_does_not_name_its_policies_is_driven_too(tmp_path: Path, kind: str) -> None:
    """A message that was kept is known by its delivery, which did not come in its request."""
    run = replace(STEADY, seed=2)
    fault = Fault(kind=kind, target="agent-2", start_s=2.0)
    played = play(run, [fault])
    path = tmp_path / "plain.dig.jsonl"
    path.write_bytes(bytes_of(played.records))
    assert b'"policy"' not in path.read_bytes()
    arranged = arrange(run, make_task(run))
    assert rerun(path, arranged.setup).records == len(played.records)
    for at in range(1, len(played.records), 11):
        records: list[Record] = []
        moment = rewind(path, at, setup=arranged.setup, sink=records.append)
        Simulation.resume(moment, FaultyTeam.of_arrangement(arranged, [fault]).team).run()
        assert tuple(map(without_policy, records)) == played.records


@pytest.mark.parametrize("kind", ["drop", "delay"])
def test_a_fork_of_a_trace_that_does_not_name_its_policies_is_driven_too(
    tmp_path: Path, kind: str
) -> None:
    """Its journal names no policies before the fork either, and says so."""
    run = replace(STEADY, seed=2)
    fault = Fault(kind=kind, target="agent-2", start_s=2.0)
    played = play(run, [fault])
    path = tmp_path / "plain.dig.jsonl"
    path.write_bytes(bytes_of(played.records))
    arranged = arrange(run, make_task(run))
    crew = Crew(FaultyTeam.of_arrangement(arranged, [fault]).team, arranged.setup)
    parent, at = path, len(played.records) - 1
    for _ in range(2):
        made = fork(parent, at, tmp_path / "forks", crew=crew).directory
        assert tuple(read_records(made)) == played.records
        assert rerun(made).records == rerun(made, arranged.setup).records == len(played.records)
        parent = made


def test_a_delivery_that_is_taken_out_of_a_journal_is_missed_where_it_was(tmp_path: Path) -> None:
    """A journal names its policies, so a message without one was kept by none."""
    run, asked, reached, *_ = story()
    ends, header = Finish(3, 1_000_000, "timeout"), Setup().header()
    path = write(tmp_path, [run, asked, reached, ends], header=header)
    assert rerun(path).is_finished
    path.unlink()
    forged = write(tmp_path, [run, asked, replace(ends, t=2)], header=header)
    with pytest.raises(DivergenceError) as told:
        rerun(forged)
    assert told.value.record == 2


def test_a_message_that_was_called_back_is_lost_again_whatever_else_is_changed(
    tmp_path: Path,
) -> None:
    """What was planned when the fork begins happens as recorded, also if its event is another."""
    run = replace(STEADY, seed=2)
    played = play(run, [Fault(kind="drop", target="agent-2", start_s=2.0)])
    path = tmp_path / "plain.dig.jsonl"
    path.write_bytes(bytes_of(played.records))
    delivered = {r.event for r in played.records if isinstance(r, Deliver)}
    lost = next(
        r for r in played.records if isinstance(r, Emit) and r.by and r.event not in delivered
    )
    arranged = arrange(run, make_task(run))
    records: list[Record] = []
    moment = rewind(
        path, lost.t, edit={"type": "message"}, setup=arranged.setup, sink=records.append
    )
    Simulation.resume(moment, FaultyTeam.of_arrangement(arranged, []).team).run()
    assert records[: lost.t] == list(read_records(path))[: lost.t]
    assert [r.kind for r in records if getattr(r, "event", None) == lost.event] == [
        "emit", "expire",
    ]  # fmt: skip
