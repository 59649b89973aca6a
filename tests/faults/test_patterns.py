"""Kinds raise the patterns that the catalogue says they should, and their twins do not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from dig.faults.inject.fault import Fault
from dig.faults.inject.fault_catalogue import KINDS
from dig.graph.records import FindingRow
from dig.lab.run_pair import Played, play
from dig.tasks.run.team_run import TeamRun

from .plays import LIMITS, STEADY, raised, twin

SEEDS = range(1, 9)
WHERE: dict[str, str] = {
    "drop": "target=agent-2",
    "address_nobody": "target=agent-2",
    "crash": "target=agent-2",
    "leave": "target=agent-2 start=3",
    "hoard": "target=agent-2",
    "pass_on": "target=agent-1 start=3",
    "submit_early": "target=agent-2",
    "never_submit": "target=agent-1",
    "discard_needed": "target=agent-2",
    "work_on_others_part": "target=agent-1",
}
"""Whom and when they hit so that it matters."""


def test_every_kind_that_should_raise_a_pattern_is_tried() -> None:
    """The one about lineages has a team of its own, below."""
    should = {name for name, kind in KINDS.items() if kind.raises}
    assert should == {*WHERE, "merge_across_lineages"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", WHERE)
def test_a_kind_raises_what_it_should(kind: str) -> None:
    """In most of some seeds, in a team that raises nothing otherwise."""
    fault = Fault.parse(f"{kind} {WHERE[kind]}")
    found: Counter[str] = Counter()
    for seed in SEEDS:
        assert raised(twin(seed)) == []
        found.update({*raised(play(replace(STEADY, seed=seed), [fault]))})
    assert all(found[pattern] > len(SEEDS) / 2 for pattern in KINDS[kind].raises), found


def test_what_a_fault_delays_is_late_because_no_policy_keeps_it_on_purpose() -> None:
    """In the trace the fault's delivery policy has the name of a disturbance."""
    run = replace(STEADY, limits=replace(STEADY.limits, late_window_s=10.0))
    assert "LATE" in raised(play(run, [Fault.parse("delay target=agent-1")]))


@pytest.mark.parametrize(("target", "pattern"), [("agent-1", "MC"), ("agent-2", "DL")])
def test_what_silence_raises_depends_on_who_is_silent(target: str, pattern: str) -> None:
    """MC, if nothing is left that is open; DL, if the others' parts are."""
    for seed in SEEDS:
        silent = play(replace(STEADY, seed=seed), [Fault(kind="silent", target=target)])
        assert raised(silent) == [pattern]


LINEAGES = TeamRun(
    task="tests.faults.own_lineages:TASK", agents_are="own", method="mas", limits=LIMITS, to="all"
)


def _merging(played: Played) -> set[str]:
    """The activations that CLA was raised about because of what they consumed."""
    rows = [row for row in played.records if isinstance(row, FindingRow)]
    return {r.subject["activation"] for r in rows if (r.pattern, r.stage) == ("CLA", "consumption")}


def test_merging_across_lineages_is_found() -> None:
    """In a team that keeps them apart otherwise, exactly where it was done."""
    played = play(LINEAGES, [Fault(kind="merge_across_lineages", target="clerk")])
    assert _merging(played) == {injection.activation for injection in played.injections} != set()
    assert _merging(play(LINEAGES)) == set()
