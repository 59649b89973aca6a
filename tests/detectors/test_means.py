"""Healing can be kept to some of its means; what is left out is not done, and it says so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dig.detectors.interventions import MEANS, Means
from dig.errors import ReplayError
from dig.graph.records import Emit, HealRow, IncidentRow, Record, Redirect
from dig.runtime import Setup
from dig.tasks.run.arrange import arrange, make_simulation, make_task
from dig.tasks.run.execute import execute
from dig.tasks.run.run_fork import fork
from dig.tasks.run.team_run import TeamRun
from dig.tasks.simulated.profile import Profile
from dig.traces.journal.reader import read_records
from dig.traces.replay.rerun import rerun
from dig.traces.verify import verify

CLUMSY = TeamRun(profile=Profile(misaddress=0.05, submit_early=0.4, wait=0.1, discard=0.03))


def happened(run: TeamRun) -> list[Record]:
    seen: list[Record] = []
    make_simulation(run, make_task(run), seen.append).run()
    return seen


def used(seen: list[Record]) -> set[Means]:
    """The means that healing used, by what they do."""
    final = {r.event for r in seen if isinstance(r, Emit) and r.final}
    moved = {r.event for r in seen if isinstance(r, Redirect)}
    found: set[Means] = set()
    if moved & final:
        found.add("bounce")
    if moved - final:
        found.add("redirect")
    if any(isinstance(r, Emit) and r.by == "system" for r in seen):
        found.add("create")
    if any(isinstance(r, HealRow) and r.action in ("inject", "reroute") and r.note for r in seen):
        found.add("note")
    return found


@pytest.mark.parametrize("left_out", MEANS)
def test_a_means_that_is_left_out_is_never_used(left_out: Means) -> None:
    """And the others still are, over some seeds."""
    means = tuple(one for one in MEANS if one != left_out)
    seen = [used(happened(replace(CLUMSY, seed=seed, means=means))) for seed in range(8)]
    assert set().union(*seen) == set(means)


def test_all_means_are_used_unless_some_are_left_out() -> None:
    seen = [used(happened(replace(CLUMSY, seed=seed))) for seed in range(8)]
    assert set().union(*seen) == set(MEANS)


def test_what_is_not_done_is_written_down_with_the_reason() -> None:
    reasons = {
        row.reason
        for seed in range(8)
        for row in happened(replace(CLUMSY, seed=seed, means=("bounce",)))
        if isinstance(row, HealRow) and row.action == "refused"
    }
    assert "healing may not use the means 'create' in this run" in reasons
    assert "healing may not use the means 'note' in this run" in reasons


def test_without_notes_agents_are_woken_and_events_sent_elsewhere_without_a_word() -> None:
    """A blank system event has no text, and no `heal` row says anything as data."""
    run = replace(CLUMSY, means=("bounce", "redirect", "create"))
    actions = set()
    for seed in range(8):
        seen = happened(replace(run, seed=seed))
        for record in seen:
            if isinstance(record, HealRow) and record.action != "refused":
                actions.add(record.action)
                assert (record.note, record.about) == ("", None)
            assert not (isinstance(record, IncidentRow) and record.what == "prevented")
            assert not (isinstance(record, Emit) and record.by == "system" and record.payload)
    assert actions == {"create", "reroute"}


def test_a_run_with_some_means_comes_out_again_and_can_be_forked(tmp_path: Path) -> None:
    """The journal says which means there were."""
    run = replace(CLUMSY, seed=3, means=("note", "create"))
    path = execute(run, tmp_path).directory
    assert not verify(path / "trace.dig.jsonl").problems
    assert rerun(path).is_finished
    lines = (path / "trace.dig.jsonl").read_bytes()
    for at in (5, 40, sum(1 for _ in read_records(path)) - 2):
        again = fork(path, at, tmp_path / "forks").directory
        assert (again / "trace.dig.jsonl").read_bytes() == lines


def test_a_run_is_not_driven_again_with_other_means(tmp_path: Path) -> None:
    run = replace(CLUMSY, seed=3, means=("note",))
    path = execute(run, tmp_path).directory
    other = arrange(replace(run, means=MEANS), make_task(run)).setup
    with pytest.raises(ReplayError):
        rerun(path, other)


def test_a_setup_says_nothing_about_means_if_all_are_there() -> None:
    """So what was recorded before there were means is read as it was."""
    note: Means = "note"
    assert "means" not in Setup().header()
    assert Setup(means=(note,)).header()["means"] == [note]
