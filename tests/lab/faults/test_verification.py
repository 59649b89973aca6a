"""Forward verification: what is admitted, what is dropped, and why."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest

from dig.detectors.thresholds import Thresholds
from dig.diagnosis.causes import CausalGraph, Cause
from dig.faults.inject.fault_catalogue import KINDS
from dig.lab.run_pair import Played, play
from dig.lab.truth.baseline import Baseline
from dig.lab.truth.verification import (
    BASELINE_ANOMALOUS,
    NO_CONSEQUENCE,
    NOT_VERIFIED,
    SILENT,
    TWIN_ANOMALOUS,
    Dropped,
    verify,
)
from dig.tasks.run.arrange import make_run
from dig.tasks.simulated.profile import Profile
from tests.faults.plays import nulls_of

from .accused import accuse
from .verified import baseline, configured, fault, found, twin, verified

PAGE = Path(__file__).parents[3] / "docs" / "lab" / "faults-verification.md"


def ids(graph: CausalGraph) -> set[str]:
    """The states of a graph's nodes, by type."""
    return {f"{node.type} {node.state}" for node in graph.nodes}


@pytest.mark.parametrize(
    ("kind", "states"),
    [
        ("drop", {"event lost", "part missing", "finding raised", "outcome missing"}),
        ("address_nobody", {"event lost", "part missing", "finding raised"}),
        ("crash", {"activation failed", "event unread", "part missing", "outcome missing"}),
        ("stall", {"activation slow", "event unread", "outcome timeout"}),
        ("leave", {"agent gone", "event lost", "part missing", "outcome missing"}),
        ("silent", {"activation losing", "part missing", "agent starved", "outcome missing"}),
        ("hoard", {"activation idle", "event unread", "part missing", "outcome missing"}),
        ("discard_needed", {"activation discarding", "event lost", "outcome missing"}),
        ("delay", {"event delayed", "part late", "outcome timeout"}),
    ],
)
def test_a_fault_is_followed_to_its_alarm(kind: str, states: set[str]) -> None:
    """Each kind has the consequences that it must have, and nobody else is the cause."""
    _, graph = found(fault(kind, start_s=3.0 if kind == "leave" else 0.0))
    assert states <= ids(graph)
    assert graph.root_causes == (Cause("agent-3", kind),)
    assert graph.nodes[0].id == "agent:agent-3:injected"
    assert graph.alarms


def test_an_early_answer_is_followed_to_what_it_lacks() -> None:
    """Premature, so incomplete, wrong, and an ET."""
    _, graph = found(fault("submit_early", "agent-1", 4.0))
    assert {"activation hasty", "event premature", "outcome incomplete"} <= ids(graph)
    assert {"part missing", "outcome wrong", "finding raised"} <= ids(graph)


def test_wrong_counts_are_followed_into_the_answer() -> None:
    """A solution is miscounted, and what is made of it."""
    _, graph = found(fault("corrupt", "agent-3", how="counts"))
    assert {"event miscounted", "outcome wrong"} <= ids(graph)


@pytest.mark.parametrize("kind", ["drop", "crash", "leave"])
def test_all_lies_on_paths_in_time_from_injections_to_alarms(kind: str) -> None:
    """No node hangs in the air, no effect is seen before its cause."""
    _, graph = found(fault(kind, "agent-2", 2.0))
    sources = {edge.source for edge in graph.edges}
    targets = {edge.target for edge in graph.edges}
    for node in graph.nodes:
        assert node.state == "injected" or node.id in targets
        assert node.id in graph.alarms or node.id in sources
    for edge in graph.edges:
        assert graph.node(edge.source).onset_t <= graph.node(edge.target).onset_t


@pytest.mark.parametrize(("kind", "start_s"), [("pass_on", 3.0), ("pass_on", 5.0), ("hoard", 3.0)])
def test_nothing_is_its_own_consequence(kind: str, start_s: float) -> None:
    """What is seen at one record is a cause one way only: no way leads back to its beginning."""
    _, graph = found(fault(kind, "agent-1", start_s))
    steps = nx.DiGraph([(edge.source, edge.target) for edge in graph.edges])
    assert nx.is_directed_acyclic_graph(steps)


def test_two_faults_both_have_their_way() -> None:
    """Where two were injected, there are two roots and two root causes."""
    _, graph = found(fault("crash", "agent-2"), fault("drop", "agent-3"))
    assert {cause.kind for cause in graph.root_causes} == {"crash", "drop"}
    assert {"agent:agent-2:injected", "agent:agent-3:injected"} <= {n.id for n in graph.nodes}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_fault_without_effect_is_no_instance(kind: str) -> None:
    """Null parameters, each by itself, leave nothing that could be admitted."""
    for name, null in nulls_of(kind).items():
        for target in ("agent-1", "agent-3"):
            assert verified(4, fault(kind, target, **{name: null})) == Dropped(SILENT)


def test_a_fault_that_nobody_notices_has_no_consequence() -> None:
    """Passing on to others is mended by them."""
    reasons = {verified(seed, fault("pass_on", "agent-3", 5.0)) for seed in range(1, 9)}
    assert Dropped(NO_CONSEQUENCE) in reasons


def test_who_has_nothing_to_do_with_it_is_not_admitted() -> None:
    """If an innocent agent is accused, no path leads from its activations to the alarms."""
    accused = 0
    for kind in ("drop", "crash", "silent", "hoard"):
        seed, _ = found(fault(kind, "agent-3"))
        run = play(configured(seed), [fault(kind, "agent-3")])
        for agent in ("agent-2", "agent-4"):
            wrong = accuse(run, agent)
            if wrong.injections:
                assert verify(wrong, twin(seed), baseline()) == Dropped(NOT_VERIFIED)
                accused += 1
    assert accused >= 4


def test_a_twin_that_fails_by_itself_is_not_compared_with() -> None:
    """What the fault adds to a failure cannot be told."""
    bad, failing = fault("crash", "agent-2"), play(configured(4), [fault("crash", "agent-2")])
    other = replace(failing, faults=())
    run = play(configured(4), [bad, fault("drop", "agent-3")])
    run = replace(run, faults=run.faults[1:], injections=_second(run))
    assert verify(run, other, baseline()) == Dropped(TWIN_ANOMALOUS)


def _second(run: Played) -> tuple:  # type: ignore[type-arg]
    return tuple(replace(one, fault=0) for one in run.injections if one.fault == 1)


def test_where_fault_free_runs_fail_often_nothing_can_be_told() -> None:
    """More than one in twenty without an answer: every verdict could be chance."""
    clumsy = Profile(wait=0.2)
    runs = [play(configured(1000 + i, clumsy)) for i in range(25)]
    run = play(configured(4), [fault("crash")])
    assert verify(run, twin(4), Baseline.from_runs(runs)) == Dropped(BASELINE_ANOMALOUS)


def test_the_same_graph_in_another_process() -> None:
    """It depends on nothing but the runs: not on the seed of hashes either."""
    code = (
        "from tests.lab.faults.verified import fault, verified; import json;"
        "print(json.dumps(verified(4, fault('crash', 'agent-3')).to_json()))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(PAGE.parents[1])},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(said) == 1


@pytest.mark.parametrize(
    ("kind", "states"),
    [
        ("drop", {"event lost", "finding raised"}),
        ("crash", {"activation failed", "event unread", "finding raised", "outcome missing"}),
        ("stall", {"activation slow", "event unread", "outcome timeout"}),
    ],
)
def test_a_team_of_ones_own_needs_no_parts(kind: str, states: set[str]) -> None:
    """What is lost, unread, slow or failed is so whatever payloads say."""
    run = make_run("tests.faults.partless_team:TASK", Thresholds.load(), method="mas")
    usual = Baseline.from_runs([play(replace(run, seed=100 + i)) for i in range(40)])
    graph = verify(play(run, [fault(kind, "bob")]), play(run), usual)
    assert isinstance(graph, CausalGraph)
    assert states <= ids(graph)
