"""Forks of runs with faults: the faults go on as they were."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dig.errors import ReplayError, SettingsError
from dig.faults.inject.fault import Fault
from dig.faults.inject.fault_catalogue import KINDS
from dig.faults.inject.faulty_team import FaultyTeam, disturbance_of
from dig.graph.records import Join, Leave
from dig.tasks.run.crew import Crew
from dig.tasks.run.execute import execute
from dig.tasks.run.run_fork import fork
from dig.tasks.run.team_run import TeamRun
from dig.traces.journal.journal import read_side
from dig.traces.journal.reader import TRACE, read_records

from .forks import faulty


def trace(run: Path) -> bytes:
    return (run / TRACE).read_bytes()


def injections(run: Path) -> Any:
    return json.loads((run / "result.json").read_text())["injections"]


def forked(parent: Path, at: int, folder: Path, **more: Any) -> Path:
    disturb = disturbance_of(read_side(parent))
    return fork(parent, at, folder / "forks", disturb=disturb, **more).directory


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fork_that_changes_nothing_has_the_faults_of_its_parent(
    tmp_path: Path, kind: str
) -> None:
    """The same bytes and the same acts, at several records, with healing and without."""
    for method in ("mas", "dig"):
        fault = Fault(kind=kind, target="agent-2", start_s=2.0)
        parent = faulty(fault, 2, tmp_path / method, method=method)
        before, count = trace(parent), len(trace(parent).splitlines())
        for at in {1, count // 5, count // 2, count - 1}:
            again = forked(parent, at, tmp_path)
            assert trace(again) == before, f"{method} at {at}"
            assert injections(again) == injections(parent)
        assert trace(parent) == before


@pytest.mark.parametrize("more", [{"remembers": True}, {"problems": 2, "limit_s": 200.0}])
def test_agents_with_a_memory_and_sessions_are_forked_too(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    """With faults and without, an unchanged fork has the bytes of its parent."""
    corrupt = Fault(kind="corrupt", target="agent-1", parameters={"how": "moved"})
    for name, fault in (("late", replace(corrupt, start_s=500.0)), ("all", corrupt)):
        parent = faulty(fault, 5, tmp_path / name, method="mas", **more)
        count = len(trace(parent).splitlines())
        assert bool(injections(parent)) == (name == "all")
        for at in {1, count // 4, count // 2, count - 1}:
            assert trace(forked(parent, at, tmp_path)) == trace(parent), f"{name} at {at}"


def test_acts_before_the_record_count_for_the_most_there_may_be(tmp_path: Path) -> None:
    """A fault that acts twice at most acts once more after a fork between its two acts."""
    fault = Fault(kind="crash", target="agent-1", start_s=0.0, parameters={"at_most": 2})
    parent = faulty(fault, 3, tmp_path / "runs", method="mas")
    first, second = (act["t"] for act in injections(parent))
    again = forked(parent, first + 1, tmp_path)
    assert [act["t"] for act in injections(again)] == [first, second]


def test_a_fork_that_would_lose_the_faults_is_refused(tmp_path: Path) -> None:
    """And it leaves nothing behind."""
    parent = faulty(Fault(kind="silent", target="agent-2"), 1, tmp_path / "runs")
    with pytest.raises(ReplayError, match="is a run with faults, and a fork without them"):
        fork(parent, 5, tmp_path / "forks")
    assert not (tmp_path / "forks").exists()


@pytest.mark.parametrize("rows", ["crash", [{"kind": "crash"}], [{"kind": "x", "target": "a"}]])
def test_faults_that_a_side_file_garbles_are_refused(rows: Any) -> None:
    with pytest.raises(SettingsError):
        disturbance_of({"faults": rows})


def test_a_fork_that_lasts_longer_than_its_parent_has_the_faults_that_were_still_to_come(
    tmp_path: Path,
) -> None:
    """An agent leaves and joins once each, as in a run of that length."""
    fault = Fault(kind="leave", target="agent-3", start_s=2.0, end_s=11.0)
    short = faulty(fault, 3, tmp_path / "runs", method="mas", limit_s=5.0)
    run = TeamRun.read_simulated(read_side(short))
    assert [type(r) for r in read_records(short) if isinstance(r, Join | Leave)] == [Leave]
    longer = execute(
        replace(run, limit_s=60.0), tmp_path / "runs",
        disturb=partial(FaultyTeam.of_arrangement, faults=[fault]),
    )  # fmt: skip
    cut = tmp_path / "cut"
    cut.mkdir()
    lines = trace(longer.directory).splitlines(keepends=True)
    for count in (len(lines) // 3, len(lines) // 2):
        (cut / TRACE).write_bytes(b"".join(lines[:count]))
        (cut / "side.json").write_bytes((longer.directory / "side.json").read_bytes())
        again = forked(cut, count, tmp_path)
        assert trace(again) == trace(longer.directory)
        assert injections(again) == injections(longer.directory)


class Keeps:
    """Remembers, so what it meant before a fault changed it cannot be told again."""

    def __init__(self) -> None:
        self.seen = 0

    def restore(self, past: Any) -> None:
        self.seen = len(past)

    def plan(self, view: Any) -> Any:
        raise AssertionError("nobody is asked again")


def test_a_fault_around_an_agent_with_a_state_cannot_be_brought_back(tmp_path: Path) -> None:
    parent = faulty(Fault(kind="silent", target="agent-1", start_s=30.0), 1, tmp_path / "runs")
    crew = Crew({f"agent-{i}": Keeps() for i in range(1, 5)})
    with pytest.raises(ReplayError, match=r"agent 'agent-1' \(Keeps\) has a fault around it"):
        forked(parent, 30, tmp_path, crew=crew)
    assert not list((tmp_path / "forks").iterdir())
